#pragma once

#include <vector>

#include "collectives/plan/builder.h"

namespace weft::samples {

using namespace collectives;        // NOLINT(google-build-using-namespace): only tests include this
using namespace collectives::plan;  // NOLINT(google-build-using-namespace)

/// Ring all-reduce, written out here so that tests of plans need no algorithm.
inline Plan ring_all_reduce(std::uint32_t ranks, Placement placement = Placement::out_of_place,
                            std::optional<Rank> focus = std::nullopt) {
  PlanBuilder plan{{Collective::all_reduce, RankCount{ranks}, Rank{0}, placement},
                   {.name = "ring", .parts_per_block = ranks, .lanes = 1, .focus = focus}};
  for (std::uint32_t hop = 0; hop + 1 < ranks; ++hop) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const std::uint32_t part = (rank + ranks - hop) % ranks;
      const Rank next{(rank + 1) % ranks};
      plan.transfer(hop == 0 ? plan.input(Rank{rank}, 0, part) : plan.output(Rank{rank}, 0, part),
                    plan.output(next, 0, part), Combine::reduce, plan.input(next, 0, part));
    }
  }
  for (std::uint32_t hop = 0; hop + 1 < ranks; ++hop) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const std::uint32_t part = (rank + 1 + ranks - hop) % ranks;
      const Rank next{(rank + 1) % ranks};
      plan.transfer(plan.output(Rank{rank}, 0, part), plan.output(next, 0, part), Combine::overwrite);
    }
  }
  if (ranks == 1) plan.copy(plan.input(Rank{0}, 0, 0), plan.output(Rank{0}, 0, 0));
  return *std::move(plan).finish();
}

/// Reduction to the root by scratch: every other rank sends, the root joins in the order of ranks.
inline Plan direct_reduce(std::uint32_t ranks, Rank root) {
  PlanBuilder plan{{Collective::reduce, RankCount{ranks}, root, Placement::out_of_place}, {.name = "direct"}};
  std::optional<Location> total;
  for (std::uint32_t number = 0; number < ranks; ++number) {
    const Rank rank{number};
    Location mine = plan.input(rank, 0, 0);
    if (rank != root) {
      const Location arrived = plan.new_scratch(root, 0);
      plan.transfer(mine, arrived, Combine::overwrite);
      mine = arrived;
    }
    if (total) {
      plan.reduce(*total, mine, plan.output(root, 0, 0));
      total = plan.output(root, 0, 0);
    } else {
      total = mine;
    }
  }
  if (ranks == 1) plan.copy(*total, plan.output(root, 0, 0));
  return *std::move(plan).finish();
}

/// Every rank sends its block to every other.
inline Plan direct_all_gather(std::uint32_t ranks, Placement placement = Placement::out_of_place) {
  PlanBuilder plan{{Collective::all_gather, RankCount{ranks}, Rank{0}, placement}, {.name = "direct"}};
  for (std::uint32_t from = 0; from < ranks; ++from) {
    plan.copy(plan.input(Rank{from}, 0, 0), plan.output(Rank{from}, from, 0));
    for (std::uint32_t to = 0; to < ranks; ++to) {
      if (to == from) continue;
      plan.transfer(plan.input(Rank{from}, 0, 0), plan.output(Rank{to}, from, 0), Combine::overwrite);
    }
  }
  return *std::move(plan).finish();
}

/// A recursive-doubling all-reduce of a power of two ranks, in place, that swaps through scratch.
inline Plan doubling_all_reduce(std::uint32_t ranks) {
  PlanBuilder plan{{Collective::all_reduce, RankCount{ranks}, Rank{0}, Placement::in_place}, {.name = "doubling"}};
  for (std::uint32_t distance = 1; distance < ranks; distance *= 2) {
    std::vector<Location> arrived;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) arrived.push_back(plan.new_scratch(Rank{rank}, 0));
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      plan.transfer(plan.output(Rank{rank}, 0, 0), arrived[rank ^ distance], Combine::overwrite);
    }
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      plan.reduce(plan.output(Rank{rank}, 0, 0), arrived[rank], plan.output(Rank{rank}, 0, 0));
    }
  }
  return *std::move(plan).finish();
}

/// Reduce-scatter around a ring that accumulates in scratch (out of place) or in the input (in place).
inline Plan ring_reduce_scatter(std::uint32_t ranks, Placement placement) {
  PlanBuilder plan{{Collective::reduce_scatter, RankCount{ranks}, Rank{0}, placement}, {.name = "ring"}};
  std::vector<Location> held;
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    held.push_back(plan.input(Rank{rank}, (rank + ranks - 1) % ranks, 0));
  for (std::uint32_t hop = 0; hop + 1 < ranks; ++hop) {
    std::vector<Location> next_held(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const Rank next{(rank + 1) % ranks};
      const std::uint32_t block = (rank + 2 * ranks - 1 - hop) % ranks;
      const Location operand = plan.input(next, block, 0);
      Location to = operand;
      if (hop + 2 == ranks)
        to = plan.output(next, 0, 0);
      else if (placement == Placement::out_of_place)
        to = plan.new_scratch(next, 0);
      plan.transfer(held[rank], to, Combine::reduce, operand);
      next_held[next.index()] = to;
    }
    held = next_held;
  }
  if (ranks == 1) plan.copy(plan.input(Rank{0}, 0, 0), plan.output(Rank{0}, 0, 0));
  return *std::move(plan).finish();
}

inline std::vector<Plan> all() {
  std::vector<Plan> plans;
  for (const std::uint32_t ranks : {1U, 2U, 3U, 5U}) {
    for (const Placement placement : {Placement::out_of_place, Placement::in_place}) {
      plans.push_back(ring_all_reduce(ranks, placement));
      plans.push_back(direct_all_gather(ranks, placement));
      plans.push_back(ring_reduce_scatter(ranks, placement));
    }
    plans.push_back(direct_reduce(ranks, Rank{ranks - 1}));
    plans.push_back(direct_reduce(ranks, Rank{0}));
  }
  plans.push_back(doubling_all_reduce(4));
  plans.push_back(doubling_all_reduce(8));
  return plans;
}

}  // namespace weft::samples
