#include <gtest/gtest.h>

#include <set>

#include "tests/plans/plan_cases.h"

namespace weft::collectives {
namespace {

using algorithms::Algorithm;
using algorithms::Request;

Request request_for(Collective collective, const Shape& shape) {
  return {.contract = {.collective = collective, .ranks = shape.ranks()}, .shape = shape, .focus = {}};
}

TEST(Algorithms, AreFoundByTheirNames) {
  std::set<std::string_view> names;
  for (const Algorithm& algorithm : algorithms::all_algorithms()) {
    EXPECT_TRUE(names.insert(algorithm.name).second) << algorithm.name << " exists twice";
    EXPECT_EQ(algorithms::find_algorithm(algorithm.name), &algorithm);
    EXPECT_FALSE(algorithm.summary.empty()) << algorithm.name;
  }
  EXPECT_EQ(algorithms::find_algorithm("rings"), nullptr);
  EXPECT_EQ(algorithms::find_algorithm(""), nullptr);
}

TEST(Algorithms, PlanEveryCollectiveOnAnyShape) {
  for (std::size_t c = 0; c < kCollectives; ++c) {
    for (std::uint32_t ranks = 1; ranks <= 6; ++ranks) {
      const Request request = request_for(static_cast<Collective>(c), Shape::flat(RankCount{ranks}));
      const auto all = algorithms::all_algorithms();
      EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Algorithm& a) { return a.can_plan(request); }));
    }
  }
}

TEST(Algorithms, NameThemselvesInTheirPlans) {
  for (const PlanCase& plan_case : all_cases()) {
    for (const NamedRequest& each : requests(plan_case, 4, Breadth::one_shape)) {
      EXPECT_EQ(planned(plan_case, each.request).name, plan_case.algorithm->name);
    }
  }
}

TEST(Algorithms, RefuseWhatTheyCannotPlan) {
  const Request barrier = request_for(Collective::barrier, Shape::flat(RankCount{4}));
  const Algorithm& ring = *algorithms::find_algorithm("ring");
  ASSERT_FALSE(ring.can_plan(barrier));
  const Result<plan::Plan> refused = ring.make_plan(barrier);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::unsupported);
  EXPECT_NE(refused.error().message().find("barrier"), std::string::npos) << refused.error().message();
  EXPECT_NE(refused.error().message().find("ring"), std::string::npos) << refused.error().message();
}

TEST(Algorithms, RefuseRequestsThatMakeNoSense) {
  for (const Algorithm& algorithm : algorithms::all_algorithms()) {
    for (std::size_t c = 0; c < kCollectives; ++c) {
      const auto collective = static_cast<Collective>(c);
      const Shape two_by_two = Shape::of_hosts(std::vector<std::uint32_t>{0, 0, 1, 1});
      Request absent_root = request_for(collective, two_by_two);
      absent_root.contract.root = Rank{4};
      EXPECT_FALSE(algorithm.can_plan(absent_root)) << algorithm.name;
      EXPECT_FALSE(algorithm.make_plan(absent_root)) << algorithm.name;

      Request wrong_size = request_for(collective, two_by_two);
      wrong_size.contract.ranks = RankCount{3};
      EXPECT_FALSE(algorithm.can_plan(wrong_size)) << algorithm.name;
      EXPECT_FALSE(algorithm.make_plan(wrong_size)) << algorithm.name;
    }
    Request shuffled_in_place = request_for(Collective::all_to_all, Shape::flat(RankCount{4}));
    shuffled_in_place.contract.placement = Placement::in_place;
    EXPECT_FALSE(algorithm.can_plan(shuffled_in_place)) << algorithm.name;
  }
}

TEST(TwoLevel, NeedsSeveralRanksOnSeveralHosts) {
  const Algorithm& two_level = *algorithms::find_algorithm("two_level");
  EXPECT_FALSE(two_level.can_plan(request_for(Collective::all_reduce, Shape::flat(RankCount{4}))));
  const std::vector<std::uint32_t> alone{0, 1, 2, 3};
  EXPECT_FALSE(two_level.can_plan(request_for(Collective::all_reduce, Shape::of_hosts(alone))));
  const std::vector<std::uint32_t> unequal{0, 0, 0, 1};
  EXPECT_TRUE(two_level.can_plan(request_for(Collective::all_reduce, Shape::of_hosts(unequal))));
  EXPECT_FALSE(two_level.can_plan(request_for(Collective::all_gather, Shape::of_hosts(unequal))));
}

/// How many transfers of a plan cross between hosts.
std::uint32_t transfers_between_hosts(const plan::Plan& plan, const Shape& shape) {
  std::uint32_t count = 0;
  for (std::uint32_t r = 0; r < plan.contract.ranks.value(); ++r) {
    for (const plan::Step& step : plan.steps[r]) {
      if (step.kind == plan::StepKind::send && shape.host_of(step.peer) != shape.host_of(Rank{r})) ++count;
    }
  }
  return count;
}

TEST(Line, KeepsNeighboursOnOneHostWhateverTheNumbering) {
  const std::vector<std::uint32_t> in_turns{0, 1, 0, 1, 0, 1, 0, 1};
  const Shape shape = Shape::of_hosts(in_turns);
  const Request request = request_for(Collective::all_gather, shape);
  const Result<plan::Plan> plan = algorithms::find_algorithm("ring")->make_plan(request);
  ASSERT_TRUE(plan);
  // Two of the ring's eight links are between hosts; each carries seven blocks. In rank order all eight would be.
  EXPECT_EQ(transfers_between_hosts(*plan, shape), 2U * 7U);
}

TEST(TwoLevel, CrossesBetweenHostsOnceForEachHost) {
  const std::vector<std::uint32_t> hosts{0, 1, 2, 0, 1, 2, 0, 1, 2};
  const Shape shape = Shape::of_hosts(hosts);
  const Algorithm& two_level = *algorithms::find_algorithm("two_level");
  const Result<plan::Plan> broadcast = two_level.make_plan(request_for(Collective::broadcast, shape));
  ASSERT_TRUE(broadcast);
  EXPECT_EQ(transfers_between_hosts(*broadcast, shape), 2U);
  const Result<plan::Plan> all_reduce = two_level.make_plan(request_for(Collective::all_reduce, shape));
  ASSERT_TRUE(all_reduce);
  // Nine parts; for each, two other hosts send their value and take the result: 4/9 of the buffer for each of nine
  // parts.
  EXPECT_EQ(transfers_between_hosts(*all_reduce, shape), 9U * 4U);
}

}  // namespace
}  // namespace weft::collectives
