#pragma once

#include <bit>
#include <cstdint>
#include <optional>

#include "base/ids.h"
#include "collectives/algorithms/line.h"

namespace weft::collectives::algorithms {

/// Makes a power of two of any number of ranks: some workers first take in the value of an extra rank, work for both,
/// and hand the result back at the end. The pairs are neighbours in the line. Source: Rabenseifner, Optimization of
/// Collective Reduction Operations, ICCS 2004.
class Fold {
 public:
  explicit Fold(const Line& line)
      : line_(line), num_workers_(std::bit_floor(line.size())), num_extras_(line.size() - num_workers_) {}

  /// The largest power of two that is not above the number of ranks.
  [[nodiscard]] std::uint32_t num_workers() const noexcept { return num_workers_; }
  /// log2 of num_workers().
  [[nodiscard]] std::uint32_t num_rounds() const noexcept { return std::bit_width(num_workers_) - 1; }
  [[nodiscard]] Rank worker(std::uint32_t index) const noexcept {
    return line_.at(index < num_extras_ ? 2 * index + 1 : index + num_extras_);
  }
  /// The rank that `worker(index)` works for besides itself, if any.
  [[nodiscard]] std::optional<Rank> extra(std::uint32_t index) const noexcept {
    if (index >= num_extras_) return std::nullopt;
    return line_.at(2 * index);
  }

 private:
  const Line& line_;
  std::uint32_t num_workers_;
  std::uint32_t num_extras_;
};

}  // namespace weft::collectives::algorithms
