#include <gtest/gtest.h>

#include "collectives/plan/verify.h"
#include "tests/plans/plan_cases.h"

namespace weft::collectives {
namespace {

class Plans : public testing::TestWithParam<PlanCase> {};
INSTANTIATE_TEST_SUITE_P(All, Plans, testing::ValuesIn(all_cases()), name_of_case);

TEST_P(Plans, KeepTheContractInEverySchedule) {
  for (const std::uint32_t ranks : {1U, 2U, 3U, 4U, 5U, 7U, 8U, 16U}) {
    const Breadth breadth = ranks <= 8 ? Breadth::every_root : Breadth::some_roots;
    for (const NamedRequest& each : requests(GetParam(), ranks, breadth)) {
      const Result<plan::Verdict> verdict = plan::verify(planned(GetParam(), each.request));
      ASSERT_TRUE(verdict) << each.name << "\n" << verdict.error().message();
    }
  }
}

TEST_P(Plans, KeepTheContractOnManyRanks) {
  for (const NamedRequest& each : requests(GetParam(), 64, Breadth::one_shape)) {
    const Result<plan::Verdict> verdict = plan::verify(planned(GetParam(), each.request));
    ASSERT_TRUE(verdict) << each.name << "\n" << verdict.error().message();
  }
}

}  // namespace
}  // namespace weft::collectives
