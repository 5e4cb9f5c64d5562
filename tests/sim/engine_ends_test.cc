// How operations end when they cannot succeed: mismatches, deaths, closes, aborts. Nothing hangs, and the cause has a
// name.
#include <gtest/gtest.h>

#include "tests/sim/link_kinds.h"
#include "tests/sim/sim_group.h"

namespace weft::test {
namespace {

using collectives::Collective;
using collectives::Contract;
using collectives::Placement;
using collectives::Shape;
using collectives::engine::Call;
using collectives::engine::RequestId;

constexpr Nanos kPatience = std::chrono::seconds(2);

Call call_of(Collective collective, std::uint32_t ranks, std::uint64_t count, std::uint32_t root = 0) {
  return {{collective, RankCount{ranks}, Rank{root}, Placement::out_of_place},
          device::DataType::i32,
          device::ReduceOp::sum,
          count};
}

/// Buffers and a request of one rank.
struct Started {
  std::vector<std::int32_t> input, output;
  std::optional<RequestId> request;
  std::optional<Error> refused;
};

class EngineEnds : public testing::TestWithParam<int> {
 protected:
  [[nodiscard]] const LinkKind& kind() const { return kLinkKinds[GetParam()]; }

  static Started start(SimGroup& group, std::uint32_t rank, const Call& call, const std::string& algorithm = "ring") {
    Started started;
    started.input.assign(call.contract.input_blocks(Rank{rank}) * call.count, 1);
    started.output.assign(call.contract.output_blocks(Rank{rank}) * call.count, -1);
    const auto shape = Shape::flat(call.contract.ranks);
    const bool is_barrier = call.contract.collective == Collective::barrier;
    auto request =
        group.engine(rank).start(group.program(is_barrier ? "recursive_doubling" : algorithm, call, shape, rank),
                                 started.input.data(), started.output.data());
    if (request)
      started.request = *request;
    else
      started.refused = request.error();
    return started;
  }

  /// Runs until all are finished; time passes even where nothing happens.
  static bool run(SimGroup& group, const std::vector<std::pair<std::uint32_t, RequestId>>& requests,
                  std::optional<std::uint32_t> dead = std::nullopt) {
    const Nanos until = group.cluster().clock().now() + kPatience;
    const auto is_done = [&] {
      for (const auto& [rank, request] : requests) {
        if (!group.engine(rank).is_finished(request)) return false;
      }
      return true;
    };
    while (!is_done()) {
      if (group.cluster().clock().now() >= until) return false;
      for (std::uint32_t rank = 0; rank < group.ranks(); ++rank) {
        if (rank != dead) (void)group.engine(rank).progress();
      }
      if (!group.cluster().step()) group.cluster().advance(std::chrono::milliseconds(1));
    }
    return true;
  }
};

TEST_P(EngineEnds, DifferentCallsEndOnBothSidesAndNameBoth) {
  constexpr std::uint32_t kRanks = 2;
  struct Case {
    Call here, there;
    const char* here_text;
    const char* there_text;
  };
  Call other_type = call_of(Collective::all_reduce, kRanks, 100);
  other_type.type = device::DataType::f32;
  Call other_op = call_of(Collective::all_reduce, kRanks, 100);
  other_op.op = device::ReduceOp::max;
  const Case cases[] = {
      {call_of(Collective::all_reduce, kRanks, 100), call_of(Collective::all_reduce, kRanks, 90), "count 100",
       "count 90"},
      {call_of(Collective::all_reduce, kRanks, 9), call_of(Collective::all_reduce, kRanks, 8), "count 9", "count 8"},
      {call_of(Collective::all_reduce, kRanks, 4000), call_of(Collective::all_reduce, kRanks, 8), "count 4000",
       "count 8"},
      {call_of(Collective::all_reduce, kRanks, 4000), call_of(Collective::barrier, kRanks, 0), "all_reduce", "barrier"},
      {call_of(Collective::all_reduce, kRanks, 100), other_type, "int32", "float"},
      {call_of(Collective::all_reduce, kRanks, 100), other_op, "sum", "max"},
      {call_of(Collective::all_reduce, kRanks, 10), call_of(Collective::all_gather, kRanks, 10), "all_reduce",
       "all_gather"},
      {call_of(Collective::broadcast, kRanks, 3, 0), call_of(Collective::broadcast, kRanks, 4, 0), "count 3",
       "count 4"},
      {call_of(Collective::broadcast, kRanks, 3, 0), call_of(Collective::all_reduce, kRanks, 3), "broadcast",
       "all_reduce"},
  };
  std::uint64_t seed = 1;
  for (const Case& c : cases) {
    for (const bool is_swapped : {false, true, false, true, false, true}) {
      SCOPED_TRACE(c.here.describe() + " / " + c.there.describe());
      SimGroup group{options_of(kind(), kRanks, seed++)};
      const Call& first = is_swapped ? c.there : c.here;
      const Call& second = is_swapped ? c.here : c.there;
      const Started a = start(group, 0, first);
      // Often the other side has parked what came for this call before it makes its own.
      for (std::uint64_t i = 0; i < seed % 3 * 20; ++i) {
        (void)group.cluster().step();
        for (std::uint32_t rank = 0; rank < kRanks; ++rank) (void)group.engine(rank).progress();
      }
      const Started b = start(group, 1, second);
      // A send that needed no answer is complete before the other side can object: then the communicator has the error.
      const Nanos until = group.cluster().clock().now() + kPatience;
      while ((!group.engine(0).failure() || !group.engine(1).failure()) && group.cluster().clock().now() < until) {
        for (std::uint32_t rank = 0; rank < kRanks; ++rank) (void)group.engine(rank).progress();
        if (!group.cluster().step()) group.cluster().advance(std::chrono::milliseconds(1));
      }
      for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
        ASSERT_TRUE(group.engine(rank).failure()) << "rank " << rank;
        const Error& error = *group.engine(rank).failure();
        EXPECT_EQ(error.code(), ErrorCode::mismatch) << error.message();
        EXPECT_NE(error.message().find(c.here_text), std::string::npos) << error.message();
        EXPECT_NE(error.message().find(c.there_text), std::string::npos) << error.message();
      }
      const Started late = start(group, 0, first);
      ASSERT_TRUE(late.refused);
      EXPECT_EQ(late.refused->code(), ErrorCode::mismatch);
    }
  }
}

TEST_P(EngineEnds, DifferentAlgorithmsAreAMismatch) {
  SimGroup group{options_of(kind(), 2, 7)};
  const Call call = call_of(Collective::all_reduce, 2, 100);
  const Started a = start(group, 0, call, "ring");
  const Started b = start(group, 1, call, "recursive_doubling");
  ASSERT_TRUE(run(group, {{0, *a.request}, {1, *b.request}}));
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    ASSERT_TRUE(group.engine(rank).failure());
    EXPECT_EQ(group.engine(rank).failure()->code(), ErrorCode::mismatch);
    EXPECT_NE(group.engine(rank).failure()->message().find("another algorithm"), std::string::npos)
        << group.engine(rank).failure()->message();
  }
}

TEST_P(EngineEnds, ASendOfAnotherCountThanItsReceiveNamesBoth) {
  for (const std::uint64_t count : {10U, 4000U}) {
    SimGroup group{options_of(kind(), 2, count)};
    Call call = call_of(Collective::broadcast, 2, count);
    std::vector<std::int32_t> source(count, 3), destination(count + 1, -1);
    ASSERT_TRUE(group.engine(0).start_point_to_point(group.pair_program(call, collectives::plan::StepKind::send, 0, 1),
                                                     source.data(), nullptr));
    for (int i = 0; i < 20; ++i) (void)group.cluster().step();
    ++call.count;
    auto receive = group.engine(1).start_point_to_point(
        group.pair_program(call, collectives::plan::StepKind::receive, 1, 0), nullptr, destination.data());
    ASSERT_TRUE(receive);
    ASSERT_TRUE(run(group, {{1, *receive}}));
    for (int i = 0; i < 1000; ++i) {
      (void)group.engine(0).progress();
      if (!group.cluster().step()) group.cluster().advance(std::chrono::milliseconds(1));
    }
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      ASSERT_TRUE(group.engine(rank).failure());
      const std::string text = group.engine(rank).failure()->message();
      EXPECT_EQ(group.engine(rank).failure()->code(), ErrorCode::mismatch) << text;
      EXPECT_NE(text.find("count " + std::to_string(count)), std::string::npos) << text;
      EXPECT_NE(text.find("count " + std::to_string(count + 1)), std::string::npos) << text;
    }
    EXPECT_EQ(destination, std::vector<std::int32_t>(count + 1, -1));
  }
}

TEST_P(EngineEnds, ADeadRankIsNamedByEveryLiveOne) {
  constexpr std::uint32_t kRanks = 4;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SimGroup group{options_of(kind(), kRanks, seed)};
    const auto dead = static_cast<std::uint32_t>(seed % kRanks);
    const Call call = call_of(Collective::all_reduce, kRanks, 4000);
    std::vector<Started> all;
    std::vector<std::pair<std::uint32_t, RequestId>> live;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      all.push_back(start(group, rank, call));
      if (rank != dead) live.emplace_back(rank, *all.back().request);
    }
    for (std::uint64_t i = 0; i < seed * 3 % 150; ++i) {
      for (std::uint32_t rank = 0; rank < kRanks; ++rank) (void)group.engine(rank).progress();
      (void)group.cluster().step();
    }
    group.cluster().kill(Rank{dead});
    ASSERT_TRUE(run(group, live, dead));
    int failed = 0;
    for (const auto& [rank, request] : live) {
      const Status status = group.engine(rank).collect(request);
      if (status) continue;  // It was done before.
      ++failed;
      EXPECT_EQ(status.error().code(), ErrorCode::peer_failed) << status.error().message();
      ASSERT_TRUE(status.error().peer());
      EXPECT_EQ(status.error().peer()->value(), dead) << status.error().message();
      const Started late = start(group, rank, call);
      ASSERT_TRUE(late.refused);
      EXPECT_EQ(late.refused->peer()->value(), dead);
    }
    EXPECT_GT(failed, 0);
  }
}

TEST_P(EngineEnds, APeerThatReportsAFailureAndClosesIsNotTheCulprit) {
  constexpr std::uint32_t kRanks = 4;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    transport::sim::SimOptions options = options_of(kind(), kRanks, seed);
    options.faults.post_again_percent = 0;  // So that a report is out before the close.
    SimGroup group{options};
    const auto dead = static_cast<std::uint32_t>(seed % kRanks);
    std::vector<Started> all;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      all.push_back(
          start(group, rank, call_of(Collective::all_reduce, kRanks, 4000), seed % 2 == 0 ? "ring" : "direct"));
    }
    // Ranks that poll seldom find a peer's last messages, its report and its close all at once.
    const auto is_awake = [&](std::uint32_t rank, std::uint64_t i) { return (i + rank) % (1 + seed % 9) == 0; };
    for (std::uint64_t i = 0; i < seed * 3 % 150; ++i) {
      for (std::uint32_t rank = 0; rank < kRanks; ++rank) (void)group.engine(rank).progress();
      (void)group.cluster().step();
    }
    group.cluster().kill(Rank{dead});
    std::vector<bool> is_closed(kRanks);
    for (std::uint64_t i = 0; i < 5000; ++i) {
      for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
        if (rank == dead || is_closed[rank] || !is_awake(rank, i)) continue;
        (void)group.engine(rank).progress();
        if (!group.engine(rank).failure()) continue;
        is_closed[rank] = true;
        group.engine(rank).close();
      }
      if (!group.cluster().step()) group.cluster().advance(std::chrono::milliseconds(1));
    }
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      if (rank == dead) continue;
      ASSERT_TRUE(group.engine(rank).failure()) << "rank " << rank;
      EXPECT_EQ(group.engine(rank).failure()->peer()->value(), dead) << group.engine(rank).failure()->message();
    }
  }
}

TEST_P(EngineEnds, APeerThatClosesTooEarlyIsNamed) {
  SimGroup group{options_of(kind(), 3, 11)};
  const Call call = call_of(Collective::all_reduce, 3, 1000);
  const Started a = start(group, 0, call);
  const Started b = start(group, 1, call);
  group.engine(2).close();  // It made one call fewer.
  ASSERT_TRUE(run(group, {{0, *a.request}, {1, *b.request}}));
  for (const auto& [rank, started] : {std::pair{0U, &a}, std::pair{1U, &b}}) {
    const Status status = group.engine(rank).collect(*started->request);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), ErrorCode::peer_failed) << status.error().message();
    EXPECT_EQ(status.error().peer()->value(), 2U) << status.error().message();
  }
}

TEST_P(EngineEnds, APeerThatIsDoneMayCloseWhileOthersAreBehind) {
  // Small slices: rank 2 sends all of its contribution without an answer and closes, while the root still waits for
  // rank 1 before it may add rank 2's.
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SimGroup group{options_of(kind(), 3, seed), 128, 1};
    const Call call = call_of(Collective::reduce, 3, seed % 2 == 0 ? 2000 : 10, 0);
    Started root = start(group, 0, call, "direct");
    Started early = start(group, 2, call, "direct");
    ASSERT_TRUE(group.run_until([&] { return group.engine(2).is_finished(*early.request); }))
        << group.engine(2).explain(*early.request);
    group.engine(2).close();
    (void)group.run_until([] { return false; });
    ASSERT_FALSE(group.engine(0).failure()) << group.engine(0).failure()->message();
    Started late = start(group, 1, call, "direct");
    ASSERT_TRUE(run(group, {{0, *root.request}, {1, *late.request}}));
    const Status status = group.engine(0).collect(*root.request);
    ASSERT_TRUE(status) << status.error().message();
    EXPECT_EQ(root.output, std::vector<std::int32_t>(call.count, 3));
  }
}

TEST_P(EngineEnds, AnAbortReachesPeersEvenIfNothingIsInFlightHere) {
  SimGroup group{options_of(kind(), 2, 5)};
  const Started waiting = start(group, 0, call_of(Collective::all_reduce, 2, 10));
  group.engine(1).fail(Error{ErrorCode::closed, "aborted by rank 1: enough"});
  ASSERT_TRUE(run(group, {{0, *waiting.request}}));
  const Status status = group.engine(0).collect(*waiting.request);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::closed);
  EXPECT_NE(status.error().message().find("enough"), std::string::npos) << status.error().message();
}

TEST_P(EngineEnds, WhatAPeerSaidBeforeItClosedIsTheCause) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SimGroup group{options_of(kind(), 2, seed)};
    const Started waiting = start(group, 0, call_of(Collective::all_reduce, 2, 4000));
    const Started other = start(group, 1, call_of(Collective::all_reduce, 2, 4000));
    for (std::uint64_t i = 0; i < seed; ++i) {
      for (std::uint32_t rank = 0; rank < 2; ++rank) (void)group.engine(rank).progress();
      (void)group.cluster().step();
    }
    ASSERT_FALSE(group.engine(0).is_finished(*waiting.request));
    group.engine(1).fail(Error{ErrorCode::limit_exceeded, "no memory"});
    while (group.engine(1).must_poll()) (void)group.engine(1).progress();
    group.engine(1).close();
    // All of it arrives before this rank looks again; and it posts before it polls.
    while (group.cluster().step()) {
    }
    ASSERT_TRUE(run(group, {{0, *waiting.request}}));
    const Status status = group.engine(0).collect(*waiting.request);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), ErrorCode::limit_exceeded) << status.error().message();
    const Started late = start(group, 0, call_of(Collective::all_reduce, 2, 1));
    ASSERT_TRUE(late.refused);
    EXPECT_EQ(late.refused->code(), ErrorCode::limit_exceeded);
  }
}

TEST_P(EngineEnds, AFaultIsToldEvenWhereTheLinkIsFullAtFirst) {
  transport::sim::SimOptions options = options_of(kind(), 2, 5);
  options.in_flight_max = 1;
  options.faults.post_again_percent = 0;
  SimGroup group{options};
  const Started waiting = start(group, 0, call_of(Collective::all_reduce, 2, 10));
  const Started other = start(group, 1, call_of(Collective::all_reduce, 2, 10));  // Fills the link.
  group.engine(1).fail(Error{ErrorCode::limit_exceeded, "no memory"});
  const Started next = start(group, 0, call_of(Collective::all_reduce, 2, 10));
  ASSERT_TRUE(run(group, {{0, *next.request}}));
  ASSERT_TRUE(group.engine(0).failure());
  EXPECT_EQ(group.engine(0).failure()->code(), ErrorCode::limit_exceeded) << group.engine(0).failure()->message();
}

TEST_P(EngineEnds, MemoryThatAFailedRankUsesAgainIsNeverTakenForWhatItSent) {
  constexpr std::uint64_t kCount = 700;
  std::uint32_t num_failed = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    transport::sim::SimOptions options = options_of(kind(), 2, seed);
    options.keys_outlive_release = true;
    SimGroup group{options};
    const Call call = call_of(Collective::broadcast, 2, kCount);
    auto* const sent = reinterpret_cast<std::int32_t*>(*group.memory(0).allocate(kCount * sizeof(std::int32_t)));
    std::fill_n(sent, kCount, 1);
    std::vector<std::int32_t> outputs[2]{std::vector<std::int32_t>(kCount, 0), std::vector<std::int32_t>(kCount, 0)};
    const auto request = [&](std::uint32_t rank) {
      const auto& program = group.program("binomial_tree", call, Shape::flat(call.contract.ranks), rank);
      return *group.engine(rank).start(program, rank == 0 ? sent : nullptr, outputs[rank].data());
    };
    const RequestId sending = request(0);
    const RequestId receiving = request(1);
    for (std::uint64_t i = 0; i < seed % 40; ++i) {
      for (std::uint32_t rank = 0; rank < 2; ++rank) (void)group.engine(rank).progress();
      (void)group.cluster().step();
    }
    group.engine(0).fail(Error{ErrorCode::limit_exceeded, "no memory"});
    ASSERT_TRUE(group.engine(0).is_finished(sending));
    (void)group.engine(0).collect(sending);
    std::fill_n(sent, kCount, 2);  // It is the caller's again, who never comes back to this communicator.
    ASSERT_TRUE(run(group, {{1, receiving}}, 0)) << group.engine(1).explain(receiving);
    const Status status = group.engine(1).collect(receiving);
    if (status) {
      ASSERT_EQ(outputs[1], std::vector<std::int32_t>(kCount, 1));
    } else {
      ++num_failed;
      EXPECT_EQ(status.error().peer(), Rank{0}) << status.error().message();
      // A link that writes breaks where the source of a write is gone, and takes the reason with it.
      EXPECT_TRUE(kind().large == transport::LargePath::write ||
                  status.error().message().find("no memory") != std::string::npos)
          << status.error().message();
    }
    group.memory(0).release(reinterpret_cast<std::byte*>(sent));
  }
  EXPECT_GT(num_failed, 50u);
}

INSTANTIATE_TEST_SUITE_P(Links, EngineEnds, testing::Range(0, kNumLinkKinds),
                         [](const auto& test) { return std::string(kLinkKinds[test.param].name); });

}  // namespace
}  // namespace weft::test
