#include "collectives/contract.h"

#include <array>
#include <cstddef>

namespace weft::collectives {
namespace {

/// In the order of the enumerators.
constexpr std::array<std::string_view, kCollectives> kNames = {
    "all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "gather", "scatter", "all_to_all", "barrier",
};

}  // namespace

std::string_view name_of(Collective collective) noexcept {
  const auto index = static_cast<std::size_t>(collective);
  return index < kNames.size() ? kNames[index] : "unknown";
}

std::optional<Collective> parse_collective(std::string_view text) noexcept {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == text) return static_cast<Collective>(i);
  }
  return std::nullopt;
}

std::uint32_t Contract::input_blocks(Rank rank) const noexcept {
  switch (collective) {
    case Collective::all_reduce:
    case Collective::reduce:
    case Collective::all_gather:
    case Collective::gather:
    case Collective::barrier: return 1;
    case Collective::broadcast: return rank == root ? 1 : 0;
    case Collective::reduce_scatter:
    case Collective::all_to_all: return ranks.value();
    case Collective::scatter: return rank == root ? ranks.value() : 0;
  }
  return 0;
}

std::uint32_t Contract::output_blocks(Rank rank) const noexcept {
  switch (collective) {
    case Collective::all_reduce:
    case Collective::broadcast:
    case Collective::reduce_scatter:
    case Collective::scatter:
    case Collective::barrier: return 1;
    case Collective::reduce: return rank == root ? 1 : 0;
    case Collective::all_gather:
    case Collective::all_to_all: return ranks.value();
    case Collective::gather: return rank == root ? ranks.value() : 0;
  }
  return 0;
}

std::optional<std::uint32_t> Contract::shared_block(Rank rank) const noexcept {
  if (placement != Placement::in_place) return std::nullopt;
  // In the rooted ones only the root has two buffers, so nobody else can have them in one place.
  if (has_root(collective) && rank != root) return std::nullopt;
  switch (collective) {
    case Collective::all_reduce:
    case Collective::reduce:
    case Collective::broadcast:
    case Collective::barrier: return 0;
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::gather:
    case Collective::scatter: return rank.value();
    case Collective::all_to_all: return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace weft::collectives
