#include "collectives/plan/plan.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "tests/plans/sample_plans.h"

namespace weft::collectives::plan {
namespace {

TEST(Plan, NamesAreThoseOfTheEnumerators) {
  EXPECT_EQ(name_of(StepKind::receive_reduce), "receive_reduce");
  EXPECT_EQ(name_of(Buffer::scratch), "scratch");
  for (std::size_t i = 0; i < kCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    EXPECT_EQ(parse_collective(name_of(collective)), collective);
  }
  EXPECT_EQ(name_of(Collective::barrier), "barrier");
  EXPECT_EQ(parse_collective("allreduce"), std::nullopt);
}

TEST(Plan, HashDiffersInWhatRanksMustAgreeOn) {
  const Plan plan = samples::ring_all_reduce(4);
  const std::vector<std::pair<const char*, std::function<void(Plan&)>>> changes = {
      {"collective", [](Plan& p) { p.contract.collective = Collective::barrier; }},
      {"ranks", [](Plan& p) { p.contract.ranks = RankCount{5}; }},
      {"root", [](Plan& p) { p.contract.root = Rank{1}; }},
      {"placement", [](Plan& p) { p.contract.placement = Placement::in_place; }},
      {"parts", [](Plan& p) { p.parts_per_block = 8; }},
      {"lanes", [](Plan& p) { p.lanes = 2; }},
      {"transfers", [](Plan& p) { ++p.num_transfers; }},
      {"a lane", [](Plan& p) { p.steps[0][0].lane = 1; }},
      {"a peer", [](Plan& p) { p.steps[0][0].peer = Rank{2}; }},
      {"a number", [](Plan& p) { std::swap(p.steps[0][0].transfer, p.steps[0][2].transfer); }},
      {"what is sent", [](Plan& p) { p.steps[0][0].source.chunk ^= 1; }},
      {"where it lands", [](Plan& p) { p.steps[0][1].destination.buffer = Buffer::scratch; }},
      {"combination", [](Plan& p) { p.steps[0][1].kind = StepKind::receive; }},
      {"a step less", [](Plan& p) { p.steps[3].pop_back(); }},
  };
  ASSERT_EQ(plan.steps[0][0].kind, StepKind::send);
  ASSERT_EQ(plan.steps[0][1].kind, StepKind::receive_reduce);
  std::set<std::uint64_t> hashes{hash_of(plan)};
  for (const auto& [what, change] : changes) {
    Plan changed = plan;
    change(changed);
    EXPECT_TRUE(hashes.insert(hash_of(changed)).second) << what;
  }
}

TEST(Plan, HashIsBlindToWhatIsARanksOwnAffair) {
  const Plan plan = samples::direct_reduce(3, Rank{0});
  Plan same = plan;
  same.name = "other";
  same.steps[0].back().after.push_back(0);
  std::swap(same.steps[0][0], same.steps[0][2]);  // The order in the list orders nothing.
  EXPECT_EQ(hash_of(same), hash_of(plan));
}

/// Ranks of different builds compare it, so it is part of the protocol: it changes only together with the wire version.
TEST(Plan, HashIsTheSameInEveryBuild) { EXPECT_EQ(hash_of(samples::ring_all_reduce(2)), 13203662319359904141ULL); }

}  // namespace
}  // namespace weft::collectives::plan
