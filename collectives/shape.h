#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace weft::collectives {

/// The shape of a group: which ranks share a host (proven by their transports, not by names).
/// Hosts are numbered in the order of their lowest rank.
class Shape {
 public:
  /// All ranks on one host.
  static Shape flat(RankCount ranks);
  /// `host_of_rank[r]` is any number that is equal for ranks of one host.
  static Shape of_hosts(std::span<const std::uint32_t> host_of_rank);

  [[nodiscard]] RankCount ranks() const noexcept { return RankCount{static_cast<std::uint32_t>(host_of_.size())}; }
  [[nodiscard]] std::uint32_t num_hosts() const noexcept { return static_cast<std::uint32_t>(ranks_of_.size()); }
  [[nodiscard]] std::uint32_t host_of(Rank rank) const noexcept { return host_of_[rank.index()]; }
  [[nodiscard]] std::span<const Rank> ranks_of(std::uint32_t host) const noexcept { return ranks_of_[host]; }
  /// True if every host has the same number of ranks (two-level algorithms need it).
  [[nodiscard]] bool is_uniform() const noexcept;

 private:
  std::vector<std::uint32_t> host_of_;
  std::vector<std::vector<Rank>> ranks_of_;
};

}  // namespace weft::collectives
