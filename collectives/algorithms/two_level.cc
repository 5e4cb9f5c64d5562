#include <vector>

#include "collectives/algorithms/line.h"
#include "collectives/algorithms/rank_order.h"
#include "collectives/algorithms/registered.h"

namespace weft::collectives::algorithms {
namespace {

using plan::Combine;
using plan::Location;
using plan::Plan;
using plan::PlanBuilder;

std::vector<Rank> ranks_on(const Shape& shape, std::uint32_t host) {
  return {shape.ranks_of(host).begin(), shape.ranks_of(host).end()};
}

/// The rank that speaks for each host: the root for its own, otherwise the lowest. The first is that of the root's
/// host.
std::vector<Rank> leaders_of(const Request& request) {
  const Shape& shape = request.shape;
  const Rank root = request.contract.root;
  std::vector<Rank> leaders;
  for (std::uint32_t i = 0; i < shape.num_hosts(); ++i) {
    const std::uint32_t host = (shape.host_of(root) + i) % shape.num_hosts();
    leaders.push_back(i == 0 ? root : shape.ranks_of(host).front());
  }
  return leaders;
}

/// Reduces inside each host, across hosts, and hands the result back, each local rank carrying one part of the buffer.
///
/// Shape:  n = hosts x local parts; every rank ends with the reduction of each part, which is completed by one rank
/// only. Cost:   4 rounds; between hosts, a rank sends 2(hosts-1)/hosts of 1/local of the buffer, so that a host's
/// links carry
///         the buffer 2(hosts-1)/hosts times, the minimum, over all of its ranks. No scratch.
/// Source: the hierarchical all-reduce of Jia et al., arXiv:1807.11205, with direct exchanges at both levels.
Result<Plan> all_reduce_by_parts(const Request& request) {
  const Shape& shape = request.shape;
  const std::uint32_t hosts = shape.num_hosts();
  const auto local = static_cast<std::uint32_t>(shape.ranks_of(0).size());
  PlanBuilder plan = start(request, kTwoLevel, hosts * local);
  const auto member = [&](std::uint32_t host, std::uint32_t index) {
    return shape.ranks_of(host % hosts)[index % local];
  };
  // Local rank `index` of every host carries the parts index*hosts ... of its host; of those, host h completes the
  // h-th.
  const auto part_of = [&](std::uint32_t index, std::uint32_t host) { return index * hosts + host % hosts; };

  for (std::uint32_t distance = 1; distance < local; ++distance) {
    for (std::uint32_t host = 0; host < hosts; ++host) {
      for (std::uint32_t index = 0; index < local; ++index) {
        for (std::uint32_t h = 0; h < hosts; ++h) {
          const std::uint32_t part = part_of(index, h);
          const Location sum = plan.output(member(host, index), 0, part);
          plan.transfer(plan.input(member(host, index + distance), 0, part), sum, Combine::reduce,
                        distance == 1 ? plan.input(member(host, index), 0, part) : sum);
        }
      }
    }
  }
  for (std::uint32_t distance = 1; distance < hosts; ++distance) {
    for (std::uint32_t host = 0; host < hosts; ++host) {
      for (std::uint32_t index = 0; index < local; ++index) {
        const std::uint32_t part = part_of(index, host);
        plan.transfer(plan.output(member(host + distance, index), 0, part), plan.output(member(host, index), 0, part),
                      Combine::reduce);
      }
    }
  }
  for (std::uint32_t distance = 1; distance < hosts; ++distance) {
    for (std::uint32_t host = 0; host < hosts; ++host) {
      for (std::uint32_t index = 0; index < local; ++index) {
        const std::uint32_t part = part_of(index, host);
        plan.transfer(plan.output(member(host, index), 0, part), plan.output(member(host + distance, index), 0, part),
                      Combine::overwrite);
      }
    }
  }
  for (std::uint32_t distance = 1; distance < local; ++distance) {
    for (std::uint32_t host = 0; host < hosts; ++host) {
      for (std::uint32_t index = 0; index < local; ++index) {
        for (std::uint32_t h = 0; h < hosts; ++h) {
          const std::uint32_t part = part_of(index, h);
          plan.transfer(plan.output(member(host, index), 0, part), plan.output(member(host, index + distance), 0, part),
                        Combine::overwrite);
        }
      }
    }
  }
  return std::move(plan).finish();
}

/// Reduces inside each host to its leader, in rank order; returns where the leaders' values are, in the order of
/// leaders.
std::vector<Location> reduce_to_leaders(PlanBuilder& plan, const Shape& shape, const std::vector<Rank>& leaders) {
  std::vector<Location> values;
  for (const Rank leader : leaders) {
    const std::vector<Rank> members = ranks_on(shape, shape.host_of(leader));
    if (members.size() == 1) {
      values.push_back(plan.input(leader, 0, 0));
      continue;
    }
    std::vector<Location> inputs;
    for (const Rank rank : members) inputs.push_back(plan.input(rank, 0, 0));
    values.push_back(plan.new_scratch(leader, 0));
    reduce_once_in_order(plan, 0, members, inputs, values.back());
  }
  return values;
}

/// Hands what `from` holds to everyone else on its host.
void broadcast_inside(PlanBuilder& plan, const Shape& shape, Rank leader, Location from) {
  for (const Rank rank : shape.ranks_of(shape.host_of(leader))) {
    if (rank != leader) plan.transfer(from, plan.output(rank, 0, 0), Combine::overwrite);
  }
}

/// Leaders reduce their hosts, exchange everyone with everyone, and hand the result back: hosts of unequal size,
/// barrier.
///
/// Shape:  every rank ends with the reduction over ranks, in the order of hosts and of the ranks inside each.
/// Cost:   3 rounds of the whole buffer; a leader sends it hosts-1 times to others. Leaders need scratch for what
/// arrives.
Result<Plan> all_reduce_by_leaders(const Request& request) {
  PlanBuilder plan = start(request, kTwoLevel);
  const std::vector<Rank> leaders = leaders_of(request);
  const std::vector<Location> values = reduce_to_leaders(plan, request.shape, leaders);
  std::vector<Location> outputs;
  for (const Rank leader : leaders) outputs.push_back(plan.output(leader, 0, 0));
  reduce_everywhere_in_order(plan, 0, leaders, values, outputs);
  for (const Rank leader : leaders) broadcast_inside(plan, request.shape, leader, plan.output(leader, 0, 0));
  return std::move(plan).finish();
}

/// Leaders reduce their hosts and send the result to the root.
///
/// Shape:  the root's output is the reduction over ranks; other ranks use scratch, never their buffers.
/// Cost:   2 rounds of the whole buffer; the root receives it once from each other host.
Result<Plan> reduce(const Request& request) {
  PlanBuilder plan = start(request, kTwoLevel);
  const std::vector<Rank> leaders = leaders_of(request);
  const std::vector<Location> values = reduce_to_leaders(plan, request.shape, leaders);
  reduce_once_in_order(plan, 0, leaders, values, plan.output(request.contract.root, 0, 0));
  return std::move(plan).finish();
}

/// The root sends to the leader of each host, which sends to its host.
///
/// Shape:  the root's input arrives in everybody's output.
/// Cost:   2 rounds of the whole buffer; each other host receives it once.
Result<Plan> broadcast(const Request& request) {
  PlanBuilder plan = start(request, kTwoLevel);
  const std::vector<Rank> leaders = leaders_of(request);
  const Rank root = request.contract.root;
  const Location from = plan.input(root, 0, 0);
  for (const Rank leader : leaders) {
    if (leader != root) plan.transfer(from, plan.output(leader, 0, 0), Combine::overwrite);
  }
  for (const Rank leader : leaders) {
    broadcast_inside(plan, request.shape, leader, leader == root ? from : plan.output(leader, 0, 0));
  }
  plan.copy(from, plan.output(root, 0, 0));
  return std::move(plan).finish();
}

/// Ranks of the same local number exchange between hosts, then each host shares what its ranks have.
///
/// Shape:  output block r is rank r's input.
/// Cost:   2 rounds; between hosts, each rank sends its block hosts-1 times, the minimum for a host.
Result<Plan> all_gather(const Request& request) {
  const Shape& shape = request.shape;
  const std::uint32_t hosts = shape.num_hosts();
  const auto local = static_cast<std::uint32_t>(shape.ranks_of(0).size());
  PlanBuilder plan = start(request, kTwoLevel);
  const auto member = [&](std::uint32_t host, std::uint32_t index) {
    return shape.ranks_of(host % hosts)[index % local];
  };
  for (std::uint32_t distance = 1; distance < hosts; ++distance) {
    for (std::uint32_t host = 0; host < hosts; ++host) {
      for (std::uint32_t index = 0; index < local; ++index) {
        const Rank rank = member(host, index);
        plan.transfer(plan.input(rank, 0, 0), plan.output(member(host + distance, index), rank.value(), 0),
                      Combine::overwrite);
      }
    }
  }
  // A rank's own block first: it is there from the start.
  for (std::uint32_t origin = 0; origin < hosts; ++origin) {
    for (std::uint32_t distance = 1; distance < local; ++distance) {
      for (std::uint32_t host = 0; host < hosts; ++host) {
        for (std::uint32_t index = 0; index < local; ++index) {
          const Rank rank = member(host, index);
          const Rank block = member(host + origin, index);
          const Location from = origin == 0 ? plan.input(rank, 0, 0) : plan.output(rank, block.value(), 0);
          plan.transfer(from, plan.output(member(host, index + distance), block.value(), 0), Combine::overwrite);
        }
      }
    }
  }
  for (std::uint32_t r = 0; r < request.contract.ranks.value(); ++r) {
    plan.copy(plan.input(Rank{r}, 0, 0), plan.output(Rank{r}, r, 0));
  }
  return std::move(plan).finish();
}

/// By parts where every host has as many ranks.
Result<Plan> all_reduce(const Request& request) {
  return request.shape.is_uniform() ? all_reduce_by_parts(request) : all_reduce_by_leaders(request);
}

bool suits(const Request& request) noexcept {
  const std::uint32_t hosts = request.shape.num_hosts();
  const bool has_two_levels = hosts > 1 && hosts < request.shape.ranks().value();
  return has_two_levels && (request.contract.collective != Collective::all_gather || request.shape.is_uniform());
}

}  // namespace

constinit const Algorithm kTwoLevel{
    .name = "two_level",
    .summary = "inside hosts and between hosts apart: several ranks on each of several hosts",
    .builders =
        {
            {Collective::all_reduce, all_reduce},
            {Collective::barrier, all_reduce_by_leaders},
            {Collective::reduce, reduce},
            {Collective::broadcast, broadcast},
            {Collective::all_gather, all_gather},
        },
    .suits = suits,
};

}  // namespace weft::collectives::algorithms
