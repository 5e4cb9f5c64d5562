#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "collectives/algorithms/line.h"
#include "collectives/plan/builder.h"

namespace weft::collectives::algorithms {

/// Rounds of transfers between the positions of a row of ranks; make(i) makes exactly one transfer.
///
/// With a focus only those that concern its rank are made, and the numbers of the others passed over: planning costs
/// the steps of one rank then, and not those of all.
class Rounds {
 public:
  Rounds(plan::PlanBuilder& plan, const Line& line) : plan_(plan), size_(line.size()) {
    if (plan.focus()) own_ = line.position_of(*plan.focus());
  }
  Rounds(plan::PlanBuilder& plan, std::span<const Rank> row)
      : plan_(plan), size_(static_cast<std::uint32_t>(row.size())) {
    if (plan.focus()) own_ = static_cast<std::uint32_t>(std::ranges::find(row, *plan.focus()) - row.begin());
  }

  /// make(i), i < size: between the positions i and i + distance, around the end. 0 < distance < size.
  template <class Make>
  void shift(std::uint32_t distance, const Make& make) {
    make_some(size_, {own_, (own_ + size_ - distance) % size_}, make);
  }
  /// make(i), i < size: between the positions i and i ^ distance. The size is a power of two.
  template <class Make>
  void exchange(std::uint32_t distance, const Make& make) {
    make_some(size_, {own_, own_ ^ distance}, make);
  }
  /// make(i), i < size - 1: to `position` from the position i + 1 after it, around the end. `position` is another
  /// than the focused rank's.
  template <class Make>
  void collect(std::uint32_t position, const Make& make) {
    const std::uint32_t turn = (own_ + size_ - position - 1) % size_;
    make_some(size_ - 1, {turn, turn}, make);
  }

 private:
  template <class Make>
  void make_some(std::uint32_t count, std::array<std::uint32_t, 2> concerned, const Make& make) {
    if (!plan_.focus()) {
      for (std::uint32_t i = 0; i < count; ++i) make(i);
      return;
    }
    std::uint32_t next = 0;
    std::ranges::sort(concerned);
    for (const std::uint32_t i : concerned) {
      if (own_ == size_ || i < next) continue;  // Nothing concerns an outsider; both may be the same transfer.
      plan_.skip_transfers(i - next);
      make(i);
      next = i + 1;
    }
    plan_.skip_transfers(count - next);
  }

  plan::PlanBuilder& plan_;
  std::uint32_t size_;
  std::uint32_t own_ = 0;  ///< The focused rank's position, or size_ if it is not in the row.
};

}  // namespace weft::collectives::algorithms
