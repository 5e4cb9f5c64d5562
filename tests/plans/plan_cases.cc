#include "tests/plans/plan_cases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace weft::collectives {

using algorithms::Algorithm;
using algorithms::Request;

std::string PlanCase::name() const { return fmt::format("{}_{}", algorithm->name, name_of(collective)); }

std::vector<std::vector<std::uint32_t>> host_layouts(std::uint32_t ranks) {
  std::vector<std::vector<std::uint32_t>> layouts(5);
  for (std::uint32_t r = 0; r < ranks; ++r) {
    layouts[0].push_back(0);
    layouts[1].push_back(r / ((ranks + 1) / 2));
    layouts[2].push_back(r % 2);
    layouts[3].push_back(r < 2 ? 0 : 1 + (r % 3 == 0 ? 1 : 0));
    layouts[4].push_back(r);
  }
  std::ranges::sort(layouts);
  layouts.erase(std::unique(layouts.begin(), layouts.end()), layouts.end());
  return layouts;
}

std::vector<NamedRequest> requests(const PlanCase& plan_case, std::uint32_t ranks, Breadth breadth) {
  std::set<std::uint32_t> roots{0};
  if (has_root(plan_case.collective) && breadth == Breadth::some_roots) roots.insert({ranks / 2, ranks - 1});
  if (has_root(plan_case.collective) && breadth == Breadth::every_root) {
    for (std::uint32_t r = 0; r < ranks; ++r) roots.insert(r);
  }
  std::vector<NamedRequest> result;
  for (const std::vector<std::uint32_t>& hosts : host_layouts(ranks)) {
    for (const Placement placement : {Placement::out_of_place, Placement::in_place}) {
      for (const std::uint32_t root : roots) {
        Request request{.contract = {.collective = plan_case.collective,
                                     .ranks = RankCount{ranks},
                                     .root = Rank{root},
                                     .placement = placement},
                        .shape = Shape::of_hosts(hosts),
                        .focus = {}};
        if (!plan_case.algorithm->can_plan(request)) continue;
        result.push_back(
            {request, fmt::format("{}: {} ranks, hosts {}, {}, root {}", plan_case.name(), ranks, fmt::join(hosts, " "),
                                  placement == Placement::in_place ? "in place" : "out of place", root)});
      }
    }
    if (breadth == Breadth::one_shape && !result.empty()) break;
  }
  return result;
}

std::vector<PlanCase> all_cases() {
  std::vector<PlanCase> cases;
  for (const Algorithm& algorithm : algorithms::all_algorithms()) {
    for (std::size_t i = 0; i < kCollectives; ++i) {
      const PlanCase plan_case{&algorithm, static_cast<Collective>(i)};
      if (!requests(plan_case, 4, Breadth::some_roots).empty()) cases.push_back(plan_case);
    }
  }
  return cases;
}

plan::Plan planned(const PlanCase& plan_case, const Request& request) {
  Result<plan::Plan> plan = plan_case.algorithm->make_plan(request);
  EXPECT_TRUE(plan) << plan.error().message();
  return plan ? std::move(*plan) : plan::Plan{};
}

}  // namespace weft::collectives
