#include <gtest/gtest.h>

#include <bit>

#include "collectives/plan/verify.h"
#include "tests/plans/plan_cases.h"

namespace weft::collectives {
namespace {

/// What docs/algorithms.md and the comments of the algorithms say of eight ranks, on two hosts of four.
struct Cost {
  const char* algorithm;
  Collective collective;
  std::uint32_t rounds;
  double sent_blocks;  ///< By the busiest rank; a part of a block counts as its share.
  bool is_position_independent;
};

std::ostream& operator<<(std::ostream& out, const Cost& cost) {
  return out << cost.algorithm << ' ' << name_of(cost.collective);
}

class Costs : public testing::TestWithParam<Cost> {};

constexpr Cost kCosts[] = {
    {"direct", Collective::all_reduce, 1, 7, true},
    {"direct", Collective::reduce, 1, 1, true},
    {"direct", Collective::broadcast, 1, 7, true},
    {"direct", Collective::all_gather, 1, 7, true},
    {"direct", Collective::reduce_scatter, 1, 7, true},
    {"direct", Collective::gather, 1, 1, true},
    {"direct", Collective::scatter, 1, 7, true},
    {"direct", Collective::all_to_all, 1, 7, true},
    {"direct", Collective::barrier, 1, 7, true},
    {"direct_split", Collective::all_reduce, 2, 1.75, false},
    {"binomial_tree", Collective::all_reduce, 6, 3, true},
    {"binomial_tree", Collective::reduce, 3, 1, true},
    {"binomial_tree", Collective::broadcast, 3, 3, true},
    {"binomial_tree", Collective::gather, 3, 4, true},
    {"binomial_tree", Collective::scatter, 3, 7, true},
    {"binomial_tree", Collective::barrier, 6, 3, true},
    {"recursive_doubling", Collective::all_reduce, 3, 3, true},
    {"recursive_doubling", Collective::all_gather, 3, 7, true},
    {"recursive_doubling", Collective::barrier, 3, 3, true},
    {"halving_doubling", Collective::all_reduce, 6, 1.75, true},
    {"halving_doubling", Collective::reduce_scatter, 3, 7, true},
    {"pairwise", Collective::all_to_all, 1, 7, true},
    {"pairwise", Collective::reduce_scatter, 1, 7, false},
    {"ring", Collective::all_reduce, 14, 1.75, false},
    {"ring", Collective::reduce, 7, 1, true},
    {"ring", Collective::broadcast, 7, 1, true},
    {"ring", Collective::all_gather, 7, 7, true},
    {"ring", Collective::reduce_scatter, 7, 7, false},
    {"two_level", Collective::all_reduce, 4, 1.75, false},
    {"two_level", Collective::reduce, 2, 1, true},
    {"two_level", Collective::broadcast, 2, 4, true},
    {"two_level", Collective::all_gather, 2, 7, true},
    {"two_level", Collective::barrier, 3, 4, true},
};

INSTANTIATE_TEST_SUITE_P(OfEightRanks, Costs, testing::ValuesIn(kCosts));

TEST_P(Costs, AreThoseOfTheDocumentation) {
  const Cost& cost = GetParam();
  const std::vector<std::uint32_t> hosts{0, 0, 0, 0, 1, 1, 1, 1};
  const algorithms::Request request{
      .contract = {.collective = cost.collective, .ranks = RankCount{8}}, .shape = Shape::of_hosts(hosts), .focus = {}};
  const PlanCase plan_case{algorithms::find_algorithm(cost.algorithm), cost.collective};
  ASSERT_NE(plan_case.algorithm, nullptr);
  const Result<plan::Verdict> verdict = plan::verify(planned(plan_case, request));
  ASSERT_TRUE(verdict) << verdict.error().message();
  EXPECT_EQ(verdict->depth, cost.rounds);
  EXPECT_DOUBLE_EQ(verdict->max_sent_blocks, cost.sent_blocks);
  EXPECT_EQ(verdict->is_position_independent, cost.is_position_independent);
}

TEST(CostTable, CoversEveryCase) { EXPECT_EQ(std::size(kCosts), all_cases().size()); }

TEST(RecursiveDoubling, TakesTwoMoreRoundsOutsideThePowersOfTwo) {
  const PlanCase plan_case{algorithms::find_algorithm("recursive_doubling"), Collective::all_reduce};
  for (const std::uint32_t ranks : {4U, 7U, 8U, 15U, 16U}) {
    const auto each = requests(plan_case, ranks, Breadth::one_shape).front();
    const Result<plan::Verdict> verdict = plan::verify(planned(plan_case, each.request));
    ASSERT_TRUE(verdict) << verdict.error().message();
    const std::uint32_t log2 = std::bit_width(ranks) - 1;
    EXPECT_EQ(verdict->depth, std::has_single_bit(ranks) ? log2 : log2 + 2) << each.name;
  }
}

}  // namespace
}  // namespace weft::collectives
