#include <vector>

#include "collectives/algorithms/line.h"
#include "collectives/algorithms/rank_order.h"
#include "collectives/algorithms/registered.h"
#include "collectives/algorithms/rounds.h"

namespace weft::collectives::algorithms {
namespace {

using plan::Combine;
using plan::Location;
using plan::Plan;
using plan::PlanBuilder;

/// Ranks in their own order: what is reduced here is reduced in rank order.
std::vector<Rank> ranks_in_order(const Request& request) {
  std::vector<Rank> ranks;
  for (std::uint32_t r = 0; r < request.contract.ranks.value(); ++r) ranks.emplace_back(r);
  return ranks;
}

std::vector<Location> inputs_of(const PlanBuilder& plan, const std::vector<Rank>& ranks, std::uint32_t block) {
  std::vector<Location> inputs;
  for (const Rank rank : ranks) inputs.push_back(plan.input(rank, block, 0));
  return inputs;
}

/// Everyone sends its whole buffer to everyone, who reduces all of them in rank order: also barrier, over no elements.
///
/// Shape:  every rank ends with ((x0 op x1) op x2) ...: the bits of a loop over the ranks.
/// Cost:   1 round; each rank sends n-1 buffers and needs n-1 buffers of scratch.
///         Two ranks out of place need no scratch: what arrives is reduced at once.
Result<Plan> all_reduce(const Request& request) {
  PlanBuilder plan = start(request, kDirect);
  const std::vector<Rank> ranks = ranks_in_order(request);
  const std::vector<Location> values = inputs_of(plan, ranks, 0);
  std::vector<Location> targets;
  for (const Rank rank : ranks) targets.push_back(plan.output(rank, 0, 0));
  if (ranks.size() == 2 && request.contract.placement == Placement::out_of_place) {
    plan.transfer(values[1], targets[0], Combine::reduce, values[0]);
    plan.transfer(values[0], targets[1], Combine::reduce, values[1]);
  } else {
    reduce_everywhere_in_order(plan, 0, ranks, values, targets);
  }
  return std::move(plan).finish();
}

/// Everyone sends its buffer to the root, which reduces all of them in rank order.
///
/// Shape:  the root's output is ((x0 op x1) op x2) ...
/// Cost:   1 round; the root receives n-1 buffers and needs as many of scratch.
Result<Plan> reduce(const Request& request) {
  PlanBuilder plan = start(request, kDirect);
  const std::vector<Rank> ranks = ranks_in_order(request);
  reduce_once_in_order(plan, 0, ranks, inputs_of(plan, ranks, 0), plan.output(request.contract.root, 0, 0));
  return std::move(plan).finish();
}

/// Everyone sends each block to its owner, who reduces in rank order.
///
/// Shape:  the output is the reduction of input block `rank`, with the bits of the direct all-reduce.
/// Cost:   1 round; each rank sends n-1 blocks, the minimum, and needs as many of scratch.
Result<Plan> reduce_scatter(const Request& request) {
  PlanBuilder plan = start(request, kDirect);
  const std::vector<Rank> ranks = ranks_in_order(request);
  Rounds rounds(plan, ranks);
  for (const Rank owner : ranks) {
    if (plan.is_kept(owner)) {
      reduce_once_in_order(plan, 0, ranks, inputs_of(plan, ranks, owner.value()), plan.output(owner, 0, 0));
      continue;
    }
    rounds.collect(owner.value(), [&](std::uint32_t turn) {
      const Rank from = ranks[(owner.index() + 1 + turn) % ranks.size()];
      plan.transfer(plan.input(from, owner.value(), 0), plan.new_scratch(owner, 0), Combine::overwrite);
    });
  }
  return std::move(plan).finish();
}

/// The root sends its buffer to everyone.
///
/// Shape:  the root's input arrives in everybody's output.
/// Cost:   1 round; the root sends n-1 buffers.
Result<Plan> broadcast(const Request& request) {
  PlanBuilder plan = start(request, kDirect);
  const Line line(request.shape, request.contract.root);
  const Location from = plan.input(request.contract.root, 0, 0);
  for (std::uint32_t i = 1; i < line.size(); ++i) {
    plan.transfer(from, plan.output(line.at(i), 0, 0), Combine::overwrite);
  }
  plan.copy(from, plan.output(request.contract.root, 0, 0));
  return std::move(plan).finish();
}

/// Everyone sends its block to everyone.
///
/// Shape:  output block r is rank r's input.
/// Cost:   1 round; each rank sends n-1 blocks.
Result<Plan> all_gather(const Request& request) {
  PlanBuilder plan = start(request, kDirect);
  const Line line(request.shape);
  Rounds rounds(plan, line);
  for (std::uint32_t distance = 1; distance < line.size(); ++distance) {
    rounds.shift(distance, [&](std::uint32_t i) {
      const Rank rank = line.at(i);
      plan.transfer(plan.input(rank, 0, 0), plan.output(line.at(i + distance), rank.value(), 0), Combine::overwrite);
    });
  }
  for (const Rank rank : ranks_in_order(request)) {
    plan.copy(plan.input(rank, 0, 0), plan.output(rank, rank.value(), 0));
  }
  return std::move(plan).finish();
}

/// Everyone sends its block to the root.
///
/// Shape:  at the root, output block r is rank r's input.
/// Cost:   1 round; the root receives n-1 blocks.
Result<Plan> gather(const Request& request) {
  PlanBuilder plan = start(request, kDirect);
  const Line line(request.shape, request.contract.root);
  const Rank root = request.contract.root;
  for (std::uint32_t i = 1; i < line.size(); ++i) {
    const Rank rank = line.at(i);
    plan.transfer(plan.input(rank, 0, 0), plan.output(root, rank.value(), 0), Combine::overwrite);
  }
  plan.copy(plan.input(root, 0, 0), plan.output(root, root.value(), 0));
  return std::move(plan).finish();
}

/// The root sends everyone its block.
///
/// Shape:  the output is the root's input block `rank`.
/// Cost:   1 round; the root sends n-1 blocks.
Result<Plan> scatter(const Request& request) {
  PlanBuilder plan = start(request, kDirect);
  const Line line(request.shape, request.contract.root);
  const Rank root = request.contract.root;
  for (std::uint32_t i = 1; i < line.size(); ++i) {
    const Rank rank = line.at(i);
    plan.transfer(plan.input(root, rank.value(), 0), plan.output(rank, 0, 0), Combine::overwrite);
  }
  plan.copy(plan.input(root, root.value(), 0), plan.output(root, 0, 0));
  return std::move(plan).finish();
}

/// Everyone sends everyone its block.
///
/// Shape:  output block r is rank r's input block `rank`.
/// Cost:   1 round; each rank sends n-1 blocks.
Result<Plan> all_to_all(const Request& request) {
  PlanBuilder plan = start(request, kDirect);
  const Line line(request.shape);
  Rounds rounds(plan, line);
  for (std::uint32_t distance = 1; distance < line.size(); ++distance) {
    rounds.shift(distance, [&](std::uint32_t i) {
      const Rank rank = line.at(i);
      const Rank peer = line.at(i + distance);
      plan.transfer(plan.input(rank, peer.value(), 0), plan.output(peer, rank.value(), 0), Combine::overwrite);
    });
  }
  for (const Rank rank : ranks_in_order(request)) {
    plan.copy(plan.input(rank, rank.value(), 0), plan.output(rank, rank.value(), 0));
  }
  return std::move(plan).finish();
}

}  // namespace

constinit const Algorithm kDirect{
    .name = "direct",
    .summary = "one round, everyone to everyone: small buffers, few ranks; reduces in rank order",
    .builders =
        {
            {Collective::all_reduce, all_reduce},
            {Collective::barrier, all_reduce},
            {Collective::reduce, reduce},
            {Collective::broadcast, broadcast},
            {Collective::all_gather, all_gather},
            {Collective::reduce_scatter, reduce_scatter},
            {Collective::gather, gather},
            {Collective::scatter, scatter},
            {Collective::all_to_all, all_to_all},
        },
};

}  // namespace weft::collectives::algorithms
