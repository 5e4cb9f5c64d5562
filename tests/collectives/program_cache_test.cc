#include "collectives/program_cache.h"

#include <gtest/gtest.h>

namespace weft::collectives {
namespace {

engine::Call call_of(std::uint64_t count) {
  return {{Collective::all_reduce, RankCount{2}, Rank{0}, Placement::out_of_place},
          device::DataType::f32,
          device::ReduceOp::sum,
          count};
}

ProgramCache make_cache() {
  return {Rank{0}, Shape::flat(RankCount{2}), select::Machine{.cores_per_host = 2},
          *select::AlgorithmSetting::parse("auto"), plan::SlicingLimits{}};
}

TEST(ProgramCache, IsTrimmedUnderOperationsInFlightAndKeepsTheirPrograms) {
  ProgramCache cache = make_cache();
  const engine::Program* const needed = *cache.collective(call_of(7));
  const engine::Program* const pair = &cache.point_to_point(call_of(8), plan::StepKind::send, Rank{1});
  for (std::uint64_t count = 100; !cache.is_full(); ++count) ASSERT_TRUE(cache.collective(call_of(count)));
  cache.trim([&](const engine::Program& program) { return &program == needed || &program == pair; });
  EXPECT_EQ(cache.size(), 2U);
  EXPECT_FALSE(cache.is_full());
  EXPECT_EQ(*cache.collective(call_of(7)), needed);
  EXPECT_EQ(&cache.point_to_point(call_of(8), plan::StepKind::send, Rank{1}), pair);
  EXPECT_EQ(needed->call.count, 7U);
}

TEST(ProgramCache, IsNotTrimmedWithEveryCallWhereMostAreNeeded) {
  ProgramCache cache = make_cache();
  for (std::uint64_t count = 1; !cache.is_full(); ++count) ASSERT_TRUE(cache.collective(call_of(count)));
  const std::size_t num_kept = cache.size();
  cache.trim([](const engine::Program&) { return true; });
  EXPECT_EQ(cache.size(), num_kept);
  EXPECT_FALSE(cache.is_full());
  for (std::uint64_t count = 10'000; !cache.is_full(); ++count) ASSERT_TRUE(cache.collective(call_of(count)));
  cache.trim([](const engine::Program&) { return false; });
  EXPECT_EQ(cache.size(), 0U);
}

}  // namespace
}  // namespace weft::collectives
