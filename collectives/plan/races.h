#pragma once

#include "base/result.h"
#include "collectives/plan/graph.h"

namespace weft::collectives::plan {

/// Numbers every location of a plan: the chunks of rank 0's input, output, scratch, then rank 1's, and so on.
class LocationNumbers {
 public:
  explicit LocationNumbers(const Plan& plan);
  [[nodiscard]] std::uint32_t of(const Location& location) const noexcept {
    return first_[location.rank.index() * 3 + static_cast<std::size_t>(location.buffer)] + location.chunk;
  }
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }

 private:
  std::vector<std::uint32_t> first_;  ///< Per rank and buffer.
  std::uint32_t count_ = 0;
};

/// Success if every two conflicting accesses (same location, at least one write) are ordered in every schedule.
/// Errors: invalid_argument — names the two steps and the location.
/// Cost:   about linear in steps and edges for plans whose edges follow their hazards; for others one pass over the
/// graph
///         per 256 accesses that are ordered only by long ways.
Status check_races(const Graph& graph, const LocationNumbers& numbers);

}  // namespace weft::collectives::plan
