#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "collectives/shape.h"

namespace weft::collectives::algorithms {

/// All ranks in a row, host by host: neighbours share a host wherever they can, so that what an algorithm sends to near
/// positions stays inside hosts, whatever the launcher's numbering. Positions wrap around: a line is also a ring.
class Line {
 public:
  explicit Line(const Shape& shape) {
    for (std::uint32_t host = 0; host < shape.num_hosts(); ++host) {
      ranks_.insert(ranks_.end(), shape.ranks_of(host).begin(), shape.ranks_of(host).end());
    }
  }
  /// The same row, begun at `first`.
  Line(const Shape& shape, Rank first) : Line(shape) { first_ = position_of(first); }

  [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(ranks_.size()); }
  [[nodiscard]] Rank at(std::uint32_t position) const noexcept { return ranks_[(first_ + position) % ranks_.size()]; }
  /// Where the rank is.
  [[nodiscard]] std::uint32_t position_of(Rank rank) const noexcept {
    const auto index = static_cast<std::uint32_t>(std::ranges::find(ranks_, rank) - ranks_.begin());
    return (index + size() - first_) % size();
  }
  /// The rank `hops` positions before `position`; hops <= size().
  [[nodiscard]] Rank behind(std::uint32_t position, std::uint32_t hops) const noexcept {
    return at(position + size() - hops);
  }

 private:
  std::vector<Rank> ranks_;
  std::uint32_t first_ = 0;
};

}  // namespace weft::collectives::algorithms
