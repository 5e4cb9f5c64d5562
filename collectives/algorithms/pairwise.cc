#include <bit>

#include "collectives/algorithms/line.h"
#include "collectives/algorithms/registered.h"
#include "collectives/algorithms/rounds.h"

namespace weft::collectives::algorithms {
namespace {

using plan::Combine;
using plan::Plan;
using plan::PlanBuilder;

/// Who a position receives from in a round: a partner in an exchange if n is a power of two, otherwise the rank `round`
/// positions on. In either case every rank has one sender and one receiver in each round.
std::uint32_t sender_to(std::uint32_t position, std::uint32_t round, std::uint32_t n) noexcept {
  return std::has_single_bit(n) ? position ^ round : (position + round) % n;
}

/// make(i), in which position i receives, for all positions.
template <class Make>
void make_round(Rounds& rounds, std::uint32_t round, std::uint32_t n, const Make& make) {
  std::has_single_bit(n) ? rounds.exchange(round, make) : rounds.shift(round, make);
}

/// Exchanges blocks with one peer after the other.
///
/// Shape:  output block r is rank r's input block `rank`.
/// Cost:   n-1 rounds of one block, started in this order, none waiting for another.
/// Source: Thakur, Rabenseifner & Gropp, IJHPCA 2005.
Result<Plan> all_to_all(const Request& request) {
  const Line line(request.shape);
  const std::uint32_t n = line.size();
  PlanBuilder plan = start(request, kPairwise);
  Rounds rounds(plan, line);
  for (std::uint32_t round = 1; round < n; ++round) {
    make_round(rounds, round, n, [&](std::uint32_t i) {
      const Rank to = line.at(i);
      const Rank from = line.at(sender_to(i, round, n));
      plan.transfer(plan.input(from, to.value(), 0), plan.output(to, from.value(), 0), Combine::overwrite);
    });
  }
  for (std::uint32_t i = 0; i < n; ++i) {
    const Rank rank = line.at(i);
    plan.copy(plan.input(rank, rank.value(), 0), plan.output(rank, rank.value(), 0));
  }
  return std::move(plan).finish();
}

/// Takes its block from one peer after the other and reduces it at once.
///
/// Shape:  the output is the reduction of input block `rank`.
/// Cost:   n-1 rounds of one block, the minimum of bytes; no scratch.
/// Source: Thakur, Rabenseifner & Gropp, IJHPCA 2005.
Result<Plan> reduce_scatter(const Request& request) {
  const Line line(request.shape);
  const std::uint32_t n = line.size();
  PlanBuilder plan = start(request, kPairwise);
  Rounds rounds(plan, line);
  if (n == 1) plan.copy(plan.input(Rank{0}, 0, 0), plan.output(Rank{0}, 0, 0));
  for (std::uint32_t round = 1; round < n; ++round) {
    make_round(rounds, round, n, [&](std::uint32_t i) {
      const Rank owner = line.at(i);
      const plan::Location sum = plan.output(owner, 0, 0);
      plan.transfer(plan.input(line.at(sender_to(i, round, n)), owner.value(), 0), sum, Combine::reduce,
                    round == 1 ? plan.input(owner, owner.value(), 0) : sum);
    });
  }
  return std::move(plan).finish();
}

}  // namespace

constinit const Algorithm kPairwise{
    .name = "pairwise",
    .summary = "one peer at a time, least bytes, no scratch: large blocks",
    .builders =
        {
            {Collective::all_to_all, all_to_all},
            {Collective::reduce_scatter, reduce_scatter},
        },
};

}  // namespace weft::collectives::algorithms
