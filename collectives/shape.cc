#include "collectives/shape.h"

#include <algorithm>
#include <unordered_map>

namespace weft::collectives {

Shape Shape::flat(RankCount ranks) { return of_hosts(std::vector<std::uint32_t>(ranks.value(), 0)); }

Shape Shape::of_hosts(std::span<const std::uint32_t> host_of_rank) {
  Shape shape;
  shape.host_of_.reserve(host_of_rank.size());
  std::unordered_map<std::uint32_t, std::uint32_t> number_of;  // Given number -> host, in the order of lowest ranks.
  for (std::uint32_t rank = 0; rank < host_of_rank.size(); ++rank) {
    const auto next = static_cast<std::uint32_t>(shape.ranks_of_.size());
    const auto [entry, is_new] = number_of.try_emplace(host_of_rank[rank], next);
    if (is_new) shape.ranks_of_.emplace_back();
    shape.host_of_.push_back(entry->second);
    shape.ranks_of_[entry->second].emplace_back(rank);
  }
  return shape;
}

bool Shape::is_uniform() const noexcept {
  return std::all_of(ranks_of_.begin(), ranks_of_.end(),
                     [&](const auto& ranks) { return ranks.size() == ranks_of_.front().size(); });
}

}  // namespace weft::collectives
