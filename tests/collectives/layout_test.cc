// Splits of counts that no memory could hold: the arithmetic alone.
#include "collectives/engine/layout.h"

#include <gtest/gtest.h>

#include "collectives/algorithms/algorithm.h"
#include "collectives/engine/program.h"

namespace weft::collectives::engine {
namespace {

constexpr std::uint64_t kCounts[] = {0,
                                     1,
                                     2,
                                     7,
                                     63,
                                     64,
                                     1000,
                                     (std::uint64_t{1} << 31) - 1,
                                     std::uint64_t{1} << 31,
                                     (std::uint64_t{1} << 31) + 1,
                                     (std::uint64_t{1} << 32) + 3,
                                     (std::uint64_t{1} << 53) + 1,
                                     ~std::uint64_t{0} - 1,
                                     ~std::uint64_t{0}};

TEST(Layout, PartsAreContiguousCompleteAndBalanced) {
  for (const std::uint64_t count : kCounts) {
    for (const std::uint64_t parts : {1, 2, 3, 5, 8, 64, 1000}) {
      for (const std::uint64_t unit : {1, 8, 16, 64}) {
        SCOPED_TRACE(testing::Message() << count << " in " << parts << " parts of units of " << unit);
        const std::uint64_t longest = longest_part(count, parts, unit);
        std::uint64_t next = 0;
        std::uint64_t shortest = ~std::uint64_t{0};
        for (std::uint64_t index = 0; index < parts; ++index) {
          const Range part = part_of(count, parts, index, unit);
          ASSERT_EQ(part.begin, next);
          ASSERT_GE(part.end, part.begin);
          ASSERT_LE(part.size(), longest);
          shortest = std::min(shortest, part.size());
          next = part.end;
        }
        ASSERT_EQ(next, count);
        ASSERT_LE(longest - shortest, 2 * unit);
      }
    }
  }
}

TEST(Layout, SlicesOfEveryPartFitTheScratchOfTheLongest) {
  for (const std::uint64_t count : {1003ULL, 16384ULL, 1'000'000'007ULL, (1ULL << 40) + 17}) {
    for (const std::uint64_t parts : {1, 3, 8, 61}) {
      for (const std::uint64_t element : {1, 2, 4, 8}) {
        const std::uint64_t unit = line_unit(element);
        const std::uint64_t longest = longest_part(count, parts, unit);
        const std::uint64_t slices = std::max<std::uint64_t>(1, longest * element / 4096);
        const std::uint64_t room = longest_part(longest, slices, unit) * element + 64;
        for (const std::uint64_t index : {std::uint64_t{0}, parts / 2, parts - 1}) {
          const std::uint64_t size = part_of(count, parts, index, unit).size();
          EXPECT_LE(longest_part(size, slices, unit) * element, room) << count << " " << parts << " " << element;
        }
      }
    }
  }
}

/// Every step of every rank of a lowered call lies inside its buffers, and the slices of the parts cover all of the
/// output.
TEST(Lower, PlacesStepsInsideBuffersBeyond32Bits) {
  constexpr std::uint32_t kRanks = 3;
  constexpr std::uint64_t kCount = (std::uint64_t{1} << 33) + 5;
  const Contract contract{Collective::all_gather, RankCount{kRanks}, Rank{0}, Placement::out_of_place};
  const Call call{contract, device::DataType::f64, device::ReduceOp::sum, kCount};
  const auto plan =
      algorithms::find_algorithm("ring")->make_plan({contract, Shape::flat(RankCount{kRanks}), std::nullopt});
  ASSERT_TRUE(plan);
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    const auto program = lower(*plan, 1, call, Rank{rank}, {});
    ASSERT_TRUE(program);
    std::uint64_t received_bytes = 0;
    for (const ProgramStep& step : (*program)->steps) {
      if (step.kind == plan::StepKind::send) continue;
      ASSERT_EQ(step.destination.buffer, plan::Buffer::output);
      EXPECT_LE(step.destination.begin_bytes + step.part_elems * 8, kRanks * kCount * 8);
      received_bytes += step.part_elems * 8;
      const std::uint32_t slices = (*program)->slicing.num_slices;
      EXPECT_EQ((*program)->slice_of(step.part_elems, slices - 1).end, step.part_elems);
    }
    EXPECT_EQ(received_bytes, kRanks * kCount * 8);
  }
}

TEST(Lower, RefusesBuffersBeyondTheAddressSpace) {
  const Contract contract{Collective::all_gather, RankCount{2}, Rank{0}, Placement::out_of_place};
  const auto plan = algorithms::find_algorithm("ring")->make_plan({contract, Shape::flat(RankCount{2}), std::nullopt});
  ASSERT_TRUE(plan);
  for (const std::uint64_t count : {std::uint64_t{1} << 53, ~std::uint64_t{0}}) {
    const auto program = lower(*plan, 1, {contract, device::DataType::f64, device::ReduceOp::sum, count}, Rank{0}, {});
    ASSERT_FALSE(program);
    EXPECT_EQ(program.error().code(), ErrorCode::out_of_range);
  }
}

}  // namespace
}  // namespace weft::collectives::engine
