#include "collectives/plan/text.h"

#include <gtest/gtest.h>

#include "collectives/plan/verify.h"
#include "tests/fakes/plan_mutants.h"
#include "tests/plans/sample_plans.h"

namespace weft::collectives::plan {
namespace {

constexpr const char* kHeader =
    "weft-plan 1\nname pair\ncollective all_reduce\nranks 2\nroot 0\nplacement out_of_place\nparts 2\nlanes 2\n"
    "transfers 4\n";

std::string error_of(const std::string& text, const TextLimits& limits = {}) {
  const Result<Plan> plan = parse_plan(text, limits);
  return plan ? "accepted" : plan.error().message();
}

void expect_refused(const std::string& text, const std::string& words, const TextLimits& limits = {}) {
  const std::string message = error_of(text, limits);
  EXPECT_NE(message.find(words), std::string::npos) << message;
}

TEST(PlanText, ComesBackExactly) {
  for (const Plan& plan : samples::all()) {
    const std::string text = to_text(plan);
    const Result<Plan> parsed = parse_plan(text);
    ASSERT_TRUE(parsed) << parsed.error().message() << "\n" << text;
    EXPECT_EQ(*parsed, plan) << text;
    EXPECT_EQ(hash_of(*parsed), hash_of(plan));
  }
}

TEST(PlanText, KeepsWrongPlansAsTheyAre) {
  for (const fakes::Mutant& mutant : fakes::mutants(samples::ring_all_reduce(3))) {
    const Result<Plan> parsed = parse_plan(to_text(mutant.plan));
    ASSERT_TRUE(parsed) << parsed.error().message();
    EXPECT_EQ(*parsed, mutant.plan) << mutant.description;
  }
  Plan plan = samples::direct_reduce(2, Rank{0});
  plan.steps[1][0].source.rank = Rank{0};
  plan.steps[1][0].lane = 7;
  EXPECT_EQ(*parse_plan(to_text(plan)), plan);
}

TEST(PlanText, ReadsAsOneWouldWriteIt) {
  const std::string text = std::string(kHeader) +
                           "# both halves at once, one a lane\n"
                           "rank 0 scratch 0\n"
                           "  0 send t0 input[0.1] to 1\n"
                           "  1 receive_reduce t1 output[0.0] = input[0.0] op from 1 lane 1\n"
                           "  2 send t2 output[0.0] to 1 after 1\n"
                           "\n"
                           "  3 receive t3 output[0.1] from 1\r\n"
                           "rank 1 scratch 0\n"
                           "\t0 receive_reduce t0 output[0.1] = input[0.1] op from 0\n"
                           "  1 send t1 input[0.0] to 0 lane 1\n"
                           "  2 receive t2 output[0.0] from 0\n"
                           "  3 send t3 output[0.1] to 0 after 0";
  const Result<Plan> plan = parse_plan(text);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->name, "pair");
  EXPECT_EQ(plan->steps[0][1].lane, 1);
  EXPECT_EQ(plan->steps[1][3].after, (std::vector<std::uint32_t>{0}));
  const Result<Verdict> verdict = verify(*plan);
  EXPECT_TRUE(verdict) << verdict.error().message();
}

TEST(PlanText, ShowsAPlan) {
  PlanBuilder builder{{Collective::reduce, RankCount{2}, Rank{1}, Placement::out_of_place}, {.name = "a\n b\x01"}};
  const Location arrived = builder.new_scratch(Rank{1}, 0);
  builder.transfer(builder.input(Rank{0}, 0, 0), arrived, Combine::overwrite);
  builder.reduce(builder.input(Rank{1}, 0, 0), arrived, builder.output(Rank{1}, 0, 0));
  EXPECT_EQ(to_text(*std::move(builder).finish()),
            "weft-plan 1\nname a b\ncollective reduce\nranks 2\nroot 1\nplacement out_of_place\nparts 1\nlanes 1\n"
            "transfers 1\n"
            "rank 0 scratch 0\n"
            "  0 send t0 input[0.0] to 1\n"
            "rank 1 scratch 1\n"
            "  0 receive t0 scratch[0.0] from 0\n"
            "  1 reduce output[0.0] = input[0.0] op scratch[0.0] after 0\n");
}

TEST(PlanText, NamesTheLineThatIsWrong) {
  const std::string header = kHeader;
  expect_refused("", "line 0: the text ends before 'weft-plan'");
  expect_refused("weft-plan 2\n", "line 1: this version reads");
  expect_refused("weft-plan 1\nname x\ncollective sum\n", "line 3: 'sum' is no collective");
  expect_refused(header, "line 9: the text ends before rank 0");
  expect_refused(header + "rank 1 scratch 0\n", "line 10: expected rank 0");
  expect_refused(header + "rank 0 scratch 0\n 1 copy input[0.0] = input[0.0]\n", "line 11: expected step 0");
  expect_refused(header + "rank 0 scratch 0\n 0 jump\n", "line 11: 'jump' is no kind of step");
  expect_refused(header + "rank 0 scratch 0\n 0 send t0 input[0.2] to 1\n", "line 11: expected a number up to 1");
  expect_refused(header + "rank 0 scratch 0\n 0 send t0 input[0.0 to 1\n", "line 11: expected a location");
  expect_refused(header + "rank 0 scratch 0\n 0 send t0 input[0.0] to 1 after\n", "line 11: expected a number");
  expect_refused(header + "rank 0 scratch 0\n 0 send t-1 input[0.0] to 1\n", "line 11: expected a number");
  expect_refused(header + "rank 0 scratch 0\n 0 send t0 input[2147483648.0] to 1\n", "line 11: the chunk's number");
  expect_refused(header + "rank 0 scratch 0\n 0 copy input[0.0] = input[0.0] now\n", "line 11: 'now' is too much");
  expect_refused(header + "rank 0 scratch 0\nrank 1 scratch 0\nrank 2 scratch 0\n", "line 12: expected the end");
}

TEST(PlanText, KeepsToItsLimits) {
  const auto text = [](const char* ranks, const char* parts, const char* scratch) {
    return std::string("weft-plan 1\nname x\ncollective all_to_all\nranks ") + ranks +
           "\nroot 0\nplacement out_of_place\nparts " + parts + "\nlanes 1\ntransfers 0\nrank 0 scratch " + scratch +
           "\n";
  };
  expect_refused(text("4294967295", "1", "0"), "line 4: 4294967295 ranks are over the limit");
  expect_refused(text("16000", "1", "0"), "more than 16777216 chunks");
  expect_refused(text("2", "4294967295", "0"), "more than 16777216 chunks");
  expect_refused(text("2", "1", "4294967295"), "line 10: the plan has more than 16777216 chunks");
  EXPECT_EQ(parse_plan(text("2", "1", "4294967295")).error().code(), ErrorCode::limit_exceeded);
  expect_refused(to_text(samples::ring_all_reduce(4)), "more than 10 steps", {.max_steps = 10});
}

}  // namespace
}  // namespace weft::collectives::plan
