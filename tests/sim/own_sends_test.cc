// Sends of a rank to itself, and many sends and receives in flight.
#include <gtest/gtest.h>

#include "tests/sim/link_kinds.h"
#include "tests/sim/sim_group.h"

namespace weft::test {
namespace {

using collectives::engine::Call;
using collectives::engine::RequestId;
using collectives::plan::StepKind;

Call bytes(std::uint64_t count) {
  return {{collectives::Collective::broadcast, RankCount{2}, Rank{0}, collectives::Placement::out_of_place},
          device::DataType::u8,
          {},
          count};
}

TEST(OwnSends, MatchInTheOrderOfCallsWhicheverHalfComesFirst) {
  for (const bool is_send_first : {true, false}) {
    SimGroup group{options_of(kLinkKinds[0], 1, 1)};
    auto& engine = group.engine(0);
    const std::uint64_t counts[] = {0, 1, 100, 5000};
    std::vector<std::vector<std::uint8_t>> sources, destinations;
    std::vector<RequestId> requests;
    for (const std::uint64_t count : counts) {
      sources.emplace_back(count, static_cast<std::uint8_t>(count + 1));
      destinations.emplace_back(count, std::uint8_t{0});
    }
    const auto start_all = [&](StepKind kind) {
      for (std::size_t i = 0; i < std::size(counts); ++i) {
        const auto& program = group.pair_program(bytes(counts[i]), kind, 0, 0);
        auto request = engine.start_point_to_point(program, kind == StepKind::send ? sources[i].data() : nullptr,
                                                   kind == StepKind::send ? nullptr : destinations[i].data());
        ASSERT_TRUE(request) << request.error().message();
        requests.push_back(*request);
      }
    };
    start_all(is_send_first ? StepKind::send : StepKind::receive);
    EXPECT_FALSE(engine.is_finished(requests[1]));
    EXPECT_NE(engine.explain(requests[1]).find("this rank itself"), std::string::npos) << engine.explain(requests[1]);
    start_all(is_send_first ? StepKind::receive : StepKind::send);
    for (const RequestId request : requests) {
      ASSERT_TRUE(engine.is_finished(request));
      EXPECT_TRUE(engine.collect(request));
    }
    EXPECT_EQ(sources, destinations);
    EXPECT_EQ(engine.num_in_flight(), 0U);
  }
}

TEST(OwnSends, OfDifferentCountsAreAMismatch) {
  SimGroup group{options_of(kLinkKinds[0], 1, 1)};
  std::uint8_t memory[64] = {};
  auto send = group.engine(0).start_point_to_point(group.pair_program(bytes(3), StepKind::send, 0, 0), memory, nullptr);
  auto receive =
      group.engine(0).start_point_to_point(group.pair_program(bytes(4), StepKind::receive, 0, 0), nullptr, memory + 32);
  ASSERT_TRUE(send && receive);
  const Status status = group.engine(0).collect(*send);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::mismatch);
  EXPECT_NE(status.error().message().find("count 4"), std::string::npos) << status.error().message();
}

TEST(OwnSends, ThatOverlapFailAloneAndHarmNoMemory) {
  SimGroup group{options_of(kLinkKinds[0], 1, 1)};
  std::uint8_t memory[64] = {1, 2, 3};
  auto send = group.engine(0).start_point_to_point(group.pair_program(bytes(8), StepKind::send, 0, 0), memory, nullptr);
  auto receive =
      group.engine(0).start_point_to_point(group.pair_program(bytes(8), StepKind::receive, 0, 0), nullptr, memory + 4);
  ASSERT_TRUE(send && receive);
  for (const RequestId request : {*send, *receive}) {
    const Status status = group.engine(0).collect(request);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), ErrorCode::invalid_argument);
  }
  EXPECT_EQ(memory[4], 0);
  EXPECT_FALSE(group.engine(0).failure());
}

class RunAhead : public testing::TestWithParam<int> {};

TEST_P(RunAhead, OfAThousandBroadcastsParksABoundedNumberAndEnds) {
  constexpr int kCalls = 1000;
  SimGroup group{options_of(kLinkKinds[GetParam()], 2, 3)};
  const Call call{{collectives::Collective::broadcast, RankCount{2}, Rank{0}, collectives::Placement::out_of_place},
                  device::DataType::u8,
                  {},
                  8};
  const auto shape = collectives::Shape::flat(RankCount{2});
  const auto& sends = group.program("direct", call, shape, 0);
  const auto& receives = group.program("direct", call, shape, 1);
  std::uint64_t value = 0;
  int sent = 0;
  std::optional<RequestId> sending;
  // The root alone: what it may send without an answer is out, and then it waits.
  const auto step_root = [&] {
    if (sending && group.engine(0).is_finished(*sending)) {
      ASSERT_TRUE(group.engine(0).collect(*sending));
      sending.reset();
    }
    if (!sending && sent < kCalls) {
      value = static_cast<std::uint64_t>(sent++);
      auto request = group.engine(0).start(sends, &value, &value);
      ASSERT_TRUE(request);
      sending = *request;
    }
    (void)group.engine(0).progress();
  };
  for (int i = 0; i < 5000; ++i) {
    step_root();
    (void)group.engine(1).progress();  // Takes messages in, without a call of its own.
    (void)group.cluster().step();
  }
  EXPECT_LE(sent, 129);
  EXPECT_GE(sent, 100);
  for (int received = 0; received < kCalls; ++received) {
    std::uint64_t got = ~0ULL;
    auto request = group.engine(1).start(receives, nullptr, &got);
    ASSERT_TRUE(request);
    ASSERT_TRUE(group.run_until([&] {
      step_root();
      return group.engine(1).is_finished(*request);
    })) << group.engine(1).explain(*request);
    ASSERT_TRUE(group.engine(1).collect(*request));
    ASSERT_EQ(got, static_cast<std::uint64_t>(received));
  }
}

TEST_P(RunAhead, ALargeMessageIsNotParkedAtAReceiverThatIsNotThere) {
  constexpr std::uint64_t kBytes = 1 << 20;
  SimGroup group{options_of(kLinkKinds[GetParam()], 2, 4), 16 << 10, 4};
  const Call call{{collectives::Collective::broadcast, RankCount{2}, Rank{0}, collectives::Placement::out_of_place},
                  device::DataType::u8,
                  {},
                  kBytes};
  const auto shape = collectives::Shape::flat(RankCount{2});
  std::vector<std::uint8_t> input(kBytes, 7), own(kBytes), output(kBytes);
  std::vector<std::uint8_t> sent(kBytes, 9), received(kBytes);
  auto& root = group.engine(0);
  auto& other = group.engine(1);
  auto send = root.start(group.program("direct", call, shape, 0), input.data(), own.data());
  auto message = root.start_point_to_point(group.pair_program(call, StepKind::send, 0, 1), sent.data(), nullptr);
  ASSERT_TRUE(send && message);
  (void)group.run_until([] { return false; });
  EXPECT_LT(other.parked_bytes(), 2048U);
  auto receive = other.start(group.program("direct", call, shape, 1), nullptr, output.data());
  auto taken = other.start_point_to_point(group.pair_program(call, StepKind::receive, 1, 0), nullptr, received.data());
  ASSERT_TRUE(receive && taken);
  ASSERT_TRUE(group.run_until([&] {
    return root.is_finished(*send) && root.is_finished(*message) && other.is_finished(*receive) &&
           other.is_finished(*taken);
  })) << other.explain(*receive);
  EXPECT_EQ(output, input);
  EXPECT_EQ(received, sent);
  EXPECT_EQ(other.parked_bytes(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Links, RunAhead, testing::Range(0, kNumLinkKinds),
                         [](const auto& test) { return std::string(kLinkKinds[test.param].name); });

}  // namespace
}  // namespace weft::test
