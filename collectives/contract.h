#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/ids.h"

namespace weft::collectives {

/// What a group of ranks does together. The numbers are those of the wire; never renumber.
enum class Collective : std::uint8_t {
  all_reduce = 0,
  reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  gather,
  scatter,
  all_to_all,
  barrier,
};
inline constexpr std::size_t kCollectives = 9;

std::string_view name_of(Collective collective) noexcept;
std::optional<Collective> parse_collective(std::string_view text) noexcept;

constexpr bool reduces(Collective c) noexcept {
  return c == Collective::all_reduce || c == Collective::reduce || c == Collective::reduce_scatter ||
         c == Collective::barrier;
}
constexpr bool has_root(Collective c) noexcept {
  return c == Collective::reduce || c == Collective::broadcast || c == Collective::gather || c == Collective::scatter;
}

/// Whether a rank's input lies inside its output (as NCCL defines it for each collective).
enum class Placement : std::uint8_t { out_of_place, in_place };

/// What every rank holds before and after; what a plan is verified against.
///
/// Buffers are made of blocks of `count` elements each, n = ranks:
///   collective      input blocks     output blocks     output holds
///   all_reduce      1                1                 the reduction over ranks
///   reduce          1                1 (root)          the reduction over ranks, at the root
///   broadcast       1 (root)         1                 the root's input
///   all_gather      1                n                 block r = rank r's input
///   reduce_scatter  n                1                 the reduction over ranks of input block `rank`
///   gather          1                n (root)          block r = rank r's input, at the root
///   scatter         n (root)         1                 the root's input block `rank`
///   all_to_all      n                n                 block r = rank r's input block `rank`
///   barrier         1 of 0 elements  1 of 0 elements   all_reduce over nothing: every rank heard of every rank
///
/// In place, input and output share memory: all_reduce, reduce, broadcast, barrier: the same block; all_gather, gather:
/// the input is output block `rank`; reduce_scatter, scatter: the output is input block `rank`. all_to_all is never in
/// place. In place binds the ranks that have both buffers (for the rooted ones: the root).
struct Contract {
  Collective collective = Collective::all_reduce;
  RankCount ranks{1};
  Rank root{0};  ///< Used if has_root(collective); else rank 0.
  Placement placement = Placement::out_of_place;

  [[nodiscard]] std::uint32_t input_blocks(Rank rank) const noexcept;
  [[nodiscard]] std::uint32_t output_blocks(Rank rank) const noexcept;
  /// The output block (all_gather, gather) or input block (reduce_scatter, scatter) or block 0 in which the other
  /// buffer of `rank` lies when in place; nullopt if this rank's buffers are apart.
  [[nodiscard]] std::optional<std::uint32_t> shared_block(Rank rank) const noexcept;

  friend bool operator==(const Contract&, const Contract&) = default;
};

}  // namespace weft::collectives
