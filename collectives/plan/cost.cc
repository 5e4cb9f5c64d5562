#include "collectives/plan/cost.h"

#include <fmt/format.h>

#include <cmath>

#include "collectives/plan/simulation.h"

namespace weft::collectives::plan {

Result<Nanos> predict(const Plan& plan, const Shape& shape, const CostModel& model, std::uint64_t count_elems,
                      std::uint32_t elem_size_bytes) {
  if (shape.ranks() != plan.contract.ranks) {
    return Error{ErrorCode::invalid_argument, fmt::format("plan {} is for {} ranks, the shape has {}", plan.name,
                                                          plan.contract.ranks.value(), shape.ranks().value())};
  }
  WEFT_TRY_ASSIGN(const Graph graph, Graph::create(plan));
  const double end_ns = Simulation{graph, shape, model, count_elems, elem_size_bytes}.run();
  // An endless link (0 bytes per ns) is infinitely slow, not undefined.
  constexpr auto kMax = static_cast<double>(Nanos::max().count()) / 2;
  return Nanos{static_cast<Nanos::rep>(std::llround(end_ns < kMax ? end_ns : kMax))};
}

}  // namespace weft::collectives::plan
