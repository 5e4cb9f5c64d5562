#include <algorithm>
#include <array>
#include <vector>

#include "collectives/algorithms/line.h"
#include "collectives/algorithms/registered.h"
#include "collectives/algorithms/rounds.h"

namespace weft::collectives::algorithms {
namespace {

using plan::Combine;
using plan::Location;
using plan::Plan;
using plan::PlanBuilder;

/// Reduce-scatter, then all-gather, around one ring.
///
/// Shape:  n parts; every rank starts with its own values of all parts and ends with the reduction of each.
/// Cost:   2(n-1) rounds; each rank sends 2(n-1)/n of the buffer, the minimum. No scratch.
/// Source: Patarasuk & Yuan, Bandwidth optimal all-reduce algorithms, JPDC 2009.
Result<Plan> all_reduce(const Request& request) {
  const Line ring(request.shape);
  const std::uint32_t n = ring.size();
  PlanBuilder plan = start(request, kRing, n);
  Rounds rounds(plan, ring);
  if (n == 1) plan.copy(plan.input(Rank{0}, 0, 0), plan.output(Rank{0}, 0, 0));

  // At `hop`, a rank forwards the part that began `hop` ranks behind it.
  for (std::uint32_t hop = 0; hop + 1 < n; ++hop) {
    rounds.shift(1, [&](std::uint32_t i) {
      const Rank rank = ring.at(i);
      const Rank next = ring.at(i + 1);
      const std::uint32_t part = (i + n - hop) % n;
      const Location from = hop == 0 ? plan.input(rank, 0, part) : plan.output(rank, 0, part);
      plan.transfer(from, plan.output(next, 0, part), Combine::reduce, plan.input(next, 0, part));
    });
  }
  // Each position now owns the finished part that carries its right neighbour's number.
  for (std::uint32_t hop = 0; hop + 1 < n; ++hop) {
    rounds.shift(1, [&](std::uint32_t i) {
      const std::uint32_t part = (i + 1 + n - hop) % n;
      plan.transfer(plan.output(ring.at(i), 0, part), plan.output(ring.at(i + 1), 0, part), Combine::overwrite);
    });
  }
  return std::move(plan).finish();
}

/// Every block goes once around the ring and collects every rank's contribution; it ends at its owner.
///
/// Shape:  n input blocks; the output is the reduction of input block `rank`.
/// Cost:   n-1 rounds; each rank sends n-1 blocks, the minimum. Two blocks of scratch, as inputs stay as they are.
/// Source: Patarasuk & Yuan, JPDC 2009.
Result<Plan> reduce_scatter(const Request& request) {
  const Line ring(request.shape);
  const std::uint32_t n = ring.size();
  PlanBuilder plan = start(request, kRing);
  Rounds rounds(plan, ring);
  if (n == 1) plan.copy(plan.input(Rank{0}, 0, 0), plan.output(Rank{0}, 0, 0));

  // Two scratch chunks by turns: while one is being sent, the other takes what arrives.
  std::array<std::vector<Location>, 2> scratch;
  for (std::uint32_t turn = 0; turn + 2 < std::min(n, 4U); ++turn) {
    for (std::uint32_t i = 0; i < n; ++i) scratch[turn].push_back(plan.new_scratch(ring.at(i), 0));
  }
  for (std::uint32_t hop = 0; hop + 1 < n; ++hop) {
    rounds.shift(1, [&](std::uint32_t i) {
      const Rank next = ring.at(i + 1);
      const std::uint32_t block = ring.behind(i, hop + 1).value();
      const Location from = hop == 0 ? plan.input(ring.at(i), block, 0) : scratch[(hop - 1) % 2][i];
      const Location to = hop + 2 == n ? plan.output(next, 0, 0) : scratch[hop % 2][(i + 1) % n];
      plan.transfer(from, to, Combine::reduce, plan.input(next, block, 0));
    });
  }
  return std::move(plan).finish();
}

/// Every block goes once around the ring.
///
/// Shape:  input is one block; output block r is rank r's input.
/// Cost:   n-1 rounds; each rank sends n-1 blocks, the minimum for what it must receive.
/// Source: Thakur, Rabenseifner & Gropp, Optimization of Collective Communication Operations in MPICH, IJHPCA 2005.
Result<Plan> all_gather(const Request& request) {
  const Line ring(request.shape);
  const std::uint32_t n = ring.size();
  PlanBuilder plan = start(request, kRing);
  Rounds rounds(plan, ring);
  for (std::uint32_t hop = 0; hop + 1 < n; ++hop) {
    rounds.shift(1, [&](std::uint32_t i) {
      const Rank rank = ring.at(i);
      const std::uint32_t block = ring.behind(i, hop).value();
      const Location from = hop == 0 ? plan.input(rank, 0, 0) : plan.output(rank, block, 0);
      plan.transfer(from, plan.output(ring.at(i + 1), block, 0), Combine::overwrite);
    });
  }
  for (std::uint32_t i = 0; i < n; ++i) {
    plan.copy(plan.input(ring.at(i), 0, 0), plan.output(ring.at(i), ring.at(i).value(), 0));
  }
  return std::move(plan).finish();
}

/// Parts of a pipeline over n ranks. It takes n - 2 + parts rounds of 1/parts of the buffer, so four parts a hop make
/// it at most a quarter longer than the buffer itself; more than 64 parts only add steps.
std::uint32_t pipeline_parts(std::uint32_t n) noexcept { return n <= 2 ? 1 : std::min(4 * (n - 2), 64U); }

/// A pipelined chain from the root through all ranks.
///
/// Shape:  the root's input arrives in everybody's output.
/// Cost:   n-2+k rounds of 1/k of the buffer, k = min(4(n-2), 64); each rank sends the buffer once.
/// Source: the segmented chain of van de Geijn, On Global Combine Operations, JPDC 1994.
Result<Plan> broadcast(const Request& request) {
  const Line chain(request.shape, request.contract.root);
  const std::uint32_t n = chain.size();
  const std::uint32_t parts = pipeline_parts(n);
  PlanBuilder plan = start(request, kRing, parts);
  for (std::uint32_t part = 0; part < parts; ++part) {
    for (std::uint32_t i = 0; i + 1 < n; ++i) {
      const Location from = i == 0 ? plan.input(chain.at(0), 0, part) : plan.output(chain.at(i), 0, part);
      plan.transfer(from, plan.output(chain.at(i + 1), 0, part), Combine::overwrite);
    }
  }
  for (std::uint32_t part = 0; part < parts; ++part) {
    plan.copy(plan.input(chain.at(0), 0, part), plan.output(chain.at(0), 0, part));
  }
  return std::move(plan).finish();
}

/// A pipelined chain of reductions that ends at the root.
///
/// Shape:  the root's output is the reduction of all inputs; other ranks use scratch, never their buffers.
/// Cost:   n-2+k rounds of 1/k of the buffer, k = min(4(n-2), 64); each rank but the root sends the buffer once.
/// Source: van de Geijn, JPDC 1994.
Result<Plan> reduce(const Request& request) {
  const Line chain(request.shape, request.contract.root);
  const std::uint32_t n = chain.size();
  const std::uint32_t parts = pipeline_parts(n);
  PlanBuilder plan = start(request, kRing, parts);
  for (std::uint32_t part = 0; part < parts; ++part) {
    if (n == 1) plan.copy(plan.input(chain.at(0), 0, part), plan.output(chain.at(0), 0, part));
    if (n == 1) continue;
    Location from = plan.input(chain.at(n - 1), 0, part);
    for (std::uint32_t i = n - 1; i-- > 0;) {
      const Rank rank = chain.at(i);
      const Location to = i == 0 ? plan.output(rank, 0, part) : plan.new_scratch(rank, part);
      plan.transfer(from, to, Combine::reduce, plan.input(rank, 0, part));
      from = to;
    }
  }
  return std::move(plan).finish();
}

}  // namespace

constinit const Algorithm kRing{
    .name = "ring",
    .summary = "least bytes for each rank and no incast: large buffers, many ranks, links of equal speed",
    .builders =
        {
            {Collective::all_reduce, all_reduce},
            {Collective::reduce_scatter, reduce_scatter},
            {Collective::all_gather, all_gather},
            {Collective::broadcast, broadcast},
            {Collective::reduce, reduce},
        },
};

}  // namespace weft::collectives::algorithms
