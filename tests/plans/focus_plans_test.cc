#include <ctime>

#include <gtest/gtest.h>

#include "base/clock.h"
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

/// Of this thread: whoever else uses the machine does not count.
Nanos processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + Nanos(time.tv_nsec);
}

/// 8192 ranks make 134 million transfers in a ring: one rank's plan must not go through them.
TEST(FocusedPlansOfManyRanks, CostTheStepsOfTheirRank) {
  constexpr std::uint32_t kRanks = 8192;
  const std::pair<const char*, Collective> cases[] = {
      {"ring", Collective::all_reduce},       {"ring", Collective::reduce_scatter},
      {"ring", Collective::all_gather},       {"direct", Collective::all_reduce},
      {"direct", Collective::reduce_scatter}, {"direct", Collective::all_gather},
      {"direct", Collective::all_to_all},     {"direct_split", Collective::all_reduce},
      {"pairwise", Collective::all_to_all},   {"pairwise", Collective::reduce_scatter}};
  for (const auto& [name, collective] : cases) {
    const algorithms::Request request{{collective, RankCount{kRanks}}, Shape::flat(RankCount{kRanks}), Rank{4711}};
    const Nanos start = processor_time();
    const Plan plan = planned({algorithms::find_algorithm(name), collective}, request);
    const Nanos took = processor_time() - start;
    EXPECT_GE(plan.steps.at(4711).size(), kRanks - 1) << name;
    EXPECT_EQ(plan.num_transfers % (kRanks * (kRanks - 1)), 0U) << name;
    // Measured: 2 to 20 ms in a release build. All transfers: 40 to 113 ms for 1024 ranks, so seconds for eight times
    // that.
    EXPECT_LT(took, std::chrono::seconds(1)) << name << ' ' << name_of(collective);
    RecordProperty(std::string(name) + "_" + std::string(name_of(collective)) + "_ns", std::to_string(took.count()));
  }
}

}  // namespace
}  // namespace weft::collectives
