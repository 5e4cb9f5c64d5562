#include "collectives/plan/builder.h"

#include <gtest/gtest.h>

#include "collectives/plan/verify.h"
#include "tests/plans/sample_plans.h"

namespace weft::collectives::plan {
namespace {

using After = std::vector<std::uint32_t>;

Contract over(std::uint32_t ranks, Collective collective = Collective::all_gather,
              Placement placement = Placement::out_of_place, Rank root = Rank{0}) {
  return {collective, RankCount{ranks}, root, placement};
}

std::string error_of(PlanBuilder builder) {
  const Result<Plan> plan = std::move(builder).finish();
  return plan ? "accepted" : plan.error().message();
}

void expect_refused(PlanBuilder builder, const std::string& words) {
  const std::string message = error_of(std::move(builder));
  EXPECT_NE(message.find(words), std::string::npos) << message;
}

TEST(PlanBuilder, OrdersEveryHazardAndNothingElse) {
  PlanBuilder builder{over(1), {.name = "hazards"}};
  const Rank rank{0};
  const Location in = builder.input(rank, 0, 0);
  const Location out = builder.output(rank, 0, 0);
  const Location a = builder.new_scratch(rank, 0);
  const Location b = builder.new_scratch(rank, 0);
  builder.copy(in, a);          // 0
  builder.copy(a, b);           // 1 reads what 0 wrote
  builder.copy(a, out);         // 2 reads it, too, and does not care about 1
  builder.copy(in, a);          // 3 writes after 0, 1 and 2; 0 is implied
  builder.copy(in, out);        // 4 writes after 2
  builder.reduce(a, b, out);    // 5 after 1, 3, 4; 1 is implied by 3
  builder.reduce(out, a, out);  // 6 reads and writes one location: after 5; 3 is implied
  builder.copy(in, b);          // 7 after the readers of b: 5 (1 is implied)
  const Result<Plan> plan = std::move(builder).finish();
  ASSERT_TRUE(plan);
  const auto& steps = plan->steps[0];
  ASSERT_EQ(steps.size(), 8U);
  EXPECT_EQ(steps[0].after, After{});
  EXPECT_EQ(steps[1].after, After{0});
  EXPECT_EQ(steps[2].after, After{0});
  EXPECT_EQ(steps[3].after, (After{1, 2}));
  EXPECT_EQ(steps[4].after, After{2});
  EXPECT_EQ(steps[5].after, (After{3, 4}));
  EXPECT_EQ(steps[6].after, After{5});
  EXPECT_EQ(steps[7].after, After{5});
}

TEST(PlanBuilder, OrdersBothEndsOfTransfers) {
  PlanBuilder builder{over(2, Collective::all_reduce), {.name = "ends"}};
  const Location out0 = builder.output(Rank{0}, 0, 0);
  const Location out1 = builder.output(Rank{1}, 0, 0);
  builder.transfer(builder.input(Rank{1}, 0, 0), out0, Combine::reduce, builder.input(Rank{0}, 0, 0));
  builder.transfer(out0, out1, Combine::overwrite, std::nullopt);
  builder.transfer(out1, out0, Combine::reduce);  // operand = destination
  const Result<Plan> plan = std::move(builder).finish();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->num_transfers, 3U);
  ASSERT_EQ(plan->steps[0].size(), 3U);
  const Step& last = plan->steps[0][2];
  EXPECT_EQ(last.kind, StepKind::receive_reduce);
  EXPECT_EQ(last.transfer, 2U);
  EXPECT_EQ(last.peer, Rank{1});
  EXPECT_EQ(last.source, last.destination);
  EXPECT_EQ(last.after, After{1});  // The send of out0; the write before it is implied.
  EXPECT_EQ(plan->steps[1][2].after, After{1});
}

TEST(PlanBuilder, NamesSharedMemoryByTheLargerBuffer) {
  const auto input_of = [](Collective collective, Rank root, Rank rank) {
    return PlanBuilder{over(4, collective, Placement::in_place, root), {.parts_per_block = 3}}.input(rank, 0, 1);
  };
  const Rank two{2};
  EXPECT_EQ(input_of(Collective::all_reduce, Rank{0}, two), (Location{two, Buffer::output, 1}));
  EXPECT_EQ(input_of(Collective::reduce, two, two), (Location{two, Buffer::output, 1}));
  EXPECT_EQ(input_of(Collective::reduce, two, Rank{1}), (Location{Rank{1}, Buffer::input, 1}));
  EXPECT_EQ(input_of(Collective::broadcast, two, two), (Location{two, Buffer::output, 1}));
  EXPECT_EQ(input_of(Collective::barrier, Rank{0}, two), (Location{two, Buffer::output, 1}));
  EXPECT_EQ(input_of(Collective::all_gather, Rank{0}, two), (Location{two, Buffer::output, 7}));
  EXPECT_EQ(input_of(Collective::gather, two, two), (Location{two, Buffer::output, 7}));
  EXPECT_EQ(input_of(Collective::gather, two, Rank{1}), (Location{Rank{1}, Buffer::input, 1}));

  const PlanBuilder scatter{over(4, Collective::scatter, Placement::in_place, two), {.parts_per_block = 3}};
  EXPECT_EQ(scatter.output(two, 0, 1), (Location{two, Buffer::input, 7}));
  EXPECT_EQ(scatter.output(Rank{1}, 0, 1), (Location{Rank{1}, Buffer::output, 1}));
  const PlanBuilder reduce_scatter{over(4, Collective::reduce_scatter, Placement::in_place), {.parts_per_block = 3}};
  EXPECT_EQ(reduce_scatter.output(two, 0, 1), (Location{two, Buffer::input, 7}));
}

TEST(PlanBuilder, ResolvesNamesThatAreMadeByHand) {
  PlanBuilder builder{over(2, Collective::all_reduce, Placement::in_place), {.name = "by hand"}};
  const Location in{Rank{0}, Buffer::input, 0};
  builder.copy(in, builder.output(Rank{0}, 0, 0));  // The same memory: nothing.
  builder.transfer(in, Location{Rank{1}, Buffer::input, 0}, Combine::reduce);
  const Result<Plan> plan = std::move(builder).finish();
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->steps[0].size(), 1U);
  EXPECT_EQ(plan->steps[0][0].source.buffer, Buffer::output);
  EXPECT_EQ(plan->steps[1][0].destination.buffer, Buffer::output);
  EXPECT_EQ(plan->steps[1][0].source.buffer, Buffer::output);
}

TEST(PlanBuilder, NumbersScratchByPart) {
  PlanBuilder builder{over(2), {.parts_per_block = 3}};
  EXPECT_EQ(builder.new_scratch(Rank{1}, 1).chunk, 1U);
  EXPECT_EQ(builder.new_scratch(Rank{1}, 1).chunk, 4U);
  EXPECT_EQ(builder.new_scratch(Rank{1}, 0).chunk, 0U);
  EXPECT_EQ(builder.new_scratch(Rank{1}, 2).chunk, 2U);
  const Result<Plan> plan = std::move(builder).finish();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->scratch_chunks, (std::vector<std::uint32_t>{0, 5}));
}

TEST(PlanBuilder, KeepsOnlyTheFocusWithTheSameNumbers) {
  for (const std::uint32_t ranks : {2U, 5U, 16U}) {
    const Plan complete = samples::ring_all_reduce(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const Plan focused = samples::ring_all_reduce(ranks, Placement::out_of_place, Rank{rank});
      EXPECT_EQ(focused.num_transfers, complete.num_transfers);
      for (std::uint32_t other = 0; other < ranks; ++other) {
        EXPECT_EQ(focused.steps[other], other == rank ? complete.steps[other] : std::vector<Step>{});
      }
    }
  }
}

TEST(PlanBuilder, FocusKeepsScratchOfItsRank) {
  const auto build = [](std::optional<Rank> focus) {
    PlanBuilder builder{over(2, Collective::all_reduce), {.name = "scratch", .focus = focus}};
    for (const Rank rank : {Rank{0}, Rank{1}}) {
      const Location first = builder.new_scratch(rank, 0);
      const Location second = builder.new_scratch(rank, 0);
      const Rank other{1 - rank.value()};
      builder.transfer(builder.input(other, 0, 0), first, Combine::overwrite);
      builder.transfer(builder.input(other, 0, 0), second, Combine::overwrite);
      builder.reduce(first, second, builder.output(rank, 0, 0));
    }
    return *std::move(builder).finish();
  };
  const Plan complete = build(std::nullopt);
  for (const Rank rank : {Rank{0}, Rank{1}}) {
    const Plan focused = build(rank);
    EXPECT_EQ(focused.steps[rank.index()], complete.steps[rank.index()]);
    EXPECT_EQ(focused.scratch_chunks[rank.index()], complete.scratch_chunks[rank.index()]);
    EXPECT_EQ(focused.num_transfers, complete.num_transfers);
  }
}

TEST(PlanBuilder, NamesTheFirstWrongCall) {
  const auto builder = [] { return PlanBuilder{over(2, Collective::all_reduce), {.name = "x", .parts_per_block = 2}}; };
  const Location in0{Rank{0}, Buffer::input, 0};
  const Location out1{Rank{1}, Buffer::output, 0};
  {
    PlanBuilder wrong = builder();
    wrong.transfer(in0, out1, Combine::overwrite);
    wrong.transfer(in0, Location{Rank{1}, Buffer::output, 2}, Combine::overwrite);
    wrong.transfer(in0, in0, Combine::overwrite);
    expect_refused(std::move(wrong),
                   "plan x: call 2 (transfer): output block 1 part 0 of rank 1 is outside its buffer");
  }
  {
    PlanBuilder wrong = builder();
    wrong.transfer(in0, Location{Rank{0}, Buffer::output, 0}, Combine::overwrite);
    expect_refused(std::move(wrong), "from rank 0 to rank 0");
  }
  {
    PlanBuilder wrong = builder();
    wrong.transfer(in0, Location{Rank{1}, Buffer::output, 1}, Combine::overwrite);
    expect_refused(std::move(wrong), "different parts");
  }
  {
    PlanBuilder wrong = builder();
    wrong.transfer(in0, out1, Combine::reduce, in0);
    expect_refused(std::move(wrong), "an operand, at the receiver");
  }
  {
    PlanBuilder wrong = builder();
    wrong.transfer(in0, out1, Combine::overwrite, std::nullopt, 1);
    expect_refused(std::move(wrong), "on one of 1 lanes");
  }
  {
    PlanBuilder wrong = builder();
    wrong.copy(in0, out1);
    expect_refused(std::move(wrong), "a copy stays on one rank");
  }
  {
    PlanBuilder wrong = builder();
    wrong.reduce(in0, out1, out1);
    expect_refused(std::move(wrong), "a reduce stays on one rank");
  }
  {
    PlanBuilder wrong = builder();
    wrong.copy(Location{Rank{0}, Buffer::scratch, 0}, Location{Rank{0}, Buffer::output, 0});
    expect_refused(std::move(wrong), "scratch block 0 part 0 of rank 0 is outside its buffer");
  }
  {
    PlanBuilder wrong = builder();
    wrong.copy(Location{Rank{9}, Buffer::input, 0}, in0);
    expect_refused(std::move(wrong), "of rank 9 is outside its buffer");
  }
}

TEST(PlanBuilderDeathTest, ChunksThatDoNotExistAreBugs) {
  const PlanBuilder builder{over(2, Collective::broadcast), {}};
  EXPECT_DEATH((void)builder.input(Rank{1}, 0, 0), "an input chunk lies inside");
  EXPECT_DEATH((void)builder.output(Rank{1}, 1, 0), "an output chunk lies inside");
  EXPECT_DEATH((void)builder.output(Rank{2}, 0, 0), "an output chunk lies inside");
}

}  // namespace
}  // namespace weft::collectives::plan
