#include "collectives/plan/describe.h"

#include <fmt/format.h>

namespace weft::collectives::plan {

std::string describe(const Location& location, std::uint32_t parts_per_block) {
  return fmt::format("{} block {} part {} of rank {}", name_of(location.buffer), location.chunk / parts_per_block,
                     location.chunk % parts_per_block, location.rank.value());
}

std::string describe(const Plan& plan, Rank rank, std::uint32_t position) {
  const Step& step = plan.steps[rank.index()][position];
  if (!is_transfer(step.kind)) return fmt::format("rank {} step {} ({})", rank.value(), position, name_of(step.kind));
  return fmt::format("rank {} step {} ({} of transfer {} {} rank {})", rank.value(), position, name_of(step.kind),
                     step.transfer, step.kind == StepKind::send ? "to" : "from", step.peer.value());
}

}  // namespace weft::collectives::plan
