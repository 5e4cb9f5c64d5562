#include <gtest/gtest.h>

#include "collectives/plan/verify.h"
#include "tests/fakes/plan_mutants.h"
#include "tests/fakes/plan_oracle.h"
#include "tests/plans/plan_cases.h"

namespace weft::collectives {
namespace {

class WrongPlans : public testing::TestWithParam<PlanCase> {};
INSTANTIATE_TEST_SUITE_P(All, WrongPlans, testing::ValuesIn(all_cases()), name_of_case);

TEST_P(WrongPlans, NoWrongMutantSurvives) {
  std::size_t num_refused = 0;
  for (const std::uint32_t ranks : {2U, 3U, 4U, 5U}) {
    for (const NamedRequest& each : requests(GetParam(), ranks, Breadth::one_shape)) {
      for (const fakes::Mutant& mutant : fakes::mutants(planned(GetParam(), each.request), 40)) {
        const Result<plan::Verdict> verdict = plan::verify(mutant.plan);
        if (!verdict) ++num_refused;
        // Only what verify() accepts needs the slow second opinion.
        ASSERT_TRUE(!verdict || mutant.is_equivalent()) << each.name << "\nsurvived: " << mutant.description;
      }
    }
  }
  EXPECT_GT(num_refused, 0U);
}

class ScheduledPlans : public testing::TestWithParam<PlanCase> {};
INSTANTIATE_TEST_SUITE_P(All, ScheduledPlans, testing::ValuesIn(all_cases()), name_of_case);

TEST_P(ScheduledPlans, GiveTheRightNumbersInRandomSchedules) {
  for (const std::uint32_t ranks : {1U, 2U, 3U, 4U, 5U, 7U, 8U}) {
    for (const NamedRequest& each : requests(GetParam(), ranks, Breadth::some_roots)) {
      const Status right = fakes::run_schedules(planned(GetParam(), each.request), 4, ranks);
      ASSERT_TRUE(right) << each.name << "\n" << right.error().message();
    }
  }
}

}  // namespace
}  // namespace weft::collectives
