#include <gtest/gtest.h>

#include "tests/plans/plan_cases.h"

namespace weft::collectives {
namespace {

using plan::Plan;
using plan::Step;

bool is_same(const Step& a, const Step& b) {
  return a.kind == b.kind && a.peer == b.peer && a.transfer == b.transfer && a.lane == b.lane && a.source == b.source &&
         a.second == b.second && a.destination == b.destination && a.after == b.after;
}

bool is_same(const std::vector<Step>& a, const std::vector<Step>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Step& x, const Step& y) { return is_same(x, y); });
}

class FocusedPlans : public testing::TestWithParam<PlanCase> {};
INSTANTIATE_TEST_SUITE_P(All, FocusedPlans, testing::ValuesIn(all_cases()), name_of_case);

TEST_P(FocusedPlans, HoldTheStepsOfTheirRankInTheWholePlan) {
  for (const std::uint32_t ranks : {1U, 2U, 3U, 4U, 5U, 7U, 8U, 16U}) {
    for (NamedRequest each : requests(GetParam(), ranks, Breadth::some_roots)) {
      const Plan whole = planned(GetParam(), each.request);
      for (std::uint32_t focus = 0; focus < ranks; ++focus) {
        each.request.focus = Rank{focus};
        const Plan own = planned(GetParam(), each.request);
        ASSERT_EQ(own.num_transfers, whole.num_transfers) << each.name;
        ASSERT_EQ(own.parts_per_block, whole.parts_per_block) << each.name;
        ASSERT_EQ(own.scratch_chunks.at(focus), whole.scratch_chunks.at(focus)) << each.name << ", focus " << focus;
        for (std::uint32_t r = 0; r < ranks; ++r) {
          const std::vector<Step>& expected = r == focus ? whole.steps[r] : std::vector<Step>{};
          ASSERT_TRUE(is_same(own.steps.at(r), expected)) << each.name << ", focus " << focus << ", steps of " << r;
        }
      }
    }
  }
}

}  // namespace
}  // namespace weft::collectives
