#include "collectives/algorithms/line.h"
#include "collectives/algorithms/registered.h"
#include "collectives/algorithms/rounds.h"

namespace weft::collectives::algorithms {
namespace {

using plan::Combine;
using plan::Plan;
using plan::PlanBuilder;

/// Everyone owns a part: it takes that part from everyone, reduces, and hands the result to everyone.
///
/// Shape:  n parts; every rank starts with its own values of all parts and ends with the reduction of each. Only the
/// owner
///         reduces a part, so that the bits are the same everywhere.
/// Cost:   2 rounds of n-1 transfers; each rank sends 2(n-1)/n of the buffer, the minimum. No scratch: where the peer's
///         memory is mapped, inputs are read once and results written once.
/// Source: reduce-scatter and all-gather of Rabenseifner, ICCS 2004, over direct exchanges.
Result<Plan> all_reduce(const Request& request) {
  const Line line(request.shape);
  const std::uint32_t n = line.size();
  PlanBuilder plan = start(request, kDirectSplit, n);
  if (n == 1) plan.copy(plan.input(Rank{0}, 0, 0), plan.output(Rank{0}, 0, 0));
  Rounds rounds(plan, line);
  // By distance, so that no two ranks begin with the same peer.
  for (std::uint32_t distance = 1; distance < n; ++distance) {
    rounds.shift(distance, [&](std::uint32_t i) {
      const Rank owner = line.at(i);
      const plan::Location sum = plan.output(owner, 0, i);
      plan.transfer(plan.input(line.at(i + distance), 0, i), sum, Combine::reduce,
                    distance == 1 ? plan.input(owner, 0, i) : sum);
    });
  }
  for (std::uint32_t distance = 1; distance < n; ++distance) {
    rounds.shift(distance, [&](std::uint32_t i) {
      plan.transfer(plan.output(line.at(i), 0, i), plan.output(line.at(i + distance), 0, i), Combine::overwrite);
    });
  }
  return std::move(plan).finish();
}

}  // namespace

constinit const Algorithm kDirectSplit{
    .name = "direct_split",
    .summary = "least bytes in two rounds: medium and large buffers between ranks that all reach each other quickly",
    .builders = {{Collective::all_reduce, all_reduce}},
};

}  // namespace weft::collectives::algorithms
