#include "base/spin.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

using namespace std::chrono_literals;
using Step = Spin::Step;

class CountingClock final : public Clock {
 public:
  [[nodiscard]] Nanos now() const noexcept override {
    ++num_reads;
    return time;
  }
  Nanos time{1000};
  mutable int num_reads = 0;
};

/// Empty polls that are answered with `step` while each takes `poll_time`, until another answer or `limit`.
int count_of(Spin& spin, Step step, CountingClock& clock, Nanos poll_time, int limit = 1'000'000) {
  int count = 0;
  while (count < limit && spin.next() == step) {
    ++count;
    clock.time += poll_time;
  }
  return count;
}

TEST(Spin, PollsForTheSpinTimeAndThenSleeps) {
  CountingClock clock;
  Spin spin(10us, Cores::enough, clock);
  const int polls = count_of(spin, Step::poll, clock, 50ns);
  EXPECT_GE(polls, 200) << "10 us of 50 ns";
  EXPECT_LE(polls, 200 + 2 * static_cast<int>(Spin::kPollsPerCheck));
  EXPECT_EQ(spin.next(), Step::sleep);
  EXPECT_EQ(spin.next(), Step::sleep) << "until reset()";
}

TEST(Spin, YieldsBetweenPollsWhenTheWaitIsNotShort) {
  CountingClock clock;
  Spin spin(1ms, Cores::enough, clock);
  EXPECT_EQ(count_of(spin, Step::poll, clock, 50ns), static_cast<int>(Spin::kPolitePolls));
  const int yields = 1 + count_of(spin, Step::yield, clock, 1us);
  EXPECT_GE(yields, 980) << "what is left of a millisecond";
  EXPECT_LE(yields, 1000);
  EXPECT_EQ(spin.next(), Step::sleep);
  spin.reset();
  EXPECT_EQ(spin.next(), Step::poll);
}

TEST(Spin, LooksAtTheClockOnceInManyPolls) {
  CountingClock clock;
  Spin spin(1ms, Cores::enough, clock);
  const int polls = count_of(spin, Step::poll, clock, 50ns);
  ASSERT_EQ(polls, static_cast<int>(Spin::kPolitePolls));
  EXPECT_LE(clock.num_reads, polls / static_cast<int>(Spin::kPollsPerCheck));
  EXPECT_GE(clock.num_reads, polls / static_cast<int>(Spin::kPollsPerCheck) - 1);
}

TEST(Spin, AShortWaitDoesNotLookAtTheClock) {
  CountingClock clock;
  Spin spin(20us, Cores::enough, clock);
  for (int wait = 0; wait < 100; ++wait) {
    for (int poll = 0; poll < 20; ++poll) ASSERT_EQ(spin.next(), Step::poll);
    spin.reset();
  }
  EXPECT_EQ(clock.num_reads, 0);
}

TEST(Spin, ResetBeginsTheTimeAnew) {
  CountingClock clock;
  Spin spin(10us, Cores::enough, clock);
  const int first = count_of(spin, Step::poll, clock, 50ns);
  EXPECT_EQ(spin.next(), Step::sleep);
  clock.time += 1h;
  spin.reset();
  EXPECT_EQ(count_of(spin, Step::poll, clock, 50ns), first);
}

TEST(Spin, YieldsAtOnceWhenRanksOutnumberCores) {
  CountingClock clock;
  Spin spin(20us, Cores::crowded, clock);
  EXPECT_EQ(spin.next(), Step::yield);
  const int yields = 1 + count_of(spin, Step::yield, clock, 1us);
  EXPECT_GE(yields, 20);
  EXPECT_LE(yields, 20 + 2 * static_cast<int>(Spin::kYieldsPerCheck));
  EXPECT_EQ(spin.next(), Step::sleep);
}

TEST(Spin, SleepsSoonWhenYieldsTakeLong) {
  CountingClock clock;
  Spin spin(20us, Cores::crowded, clock);
  EXPECT_LE(count_of(spin, Step::yield, clock, 3ms), 2 * static_cast<int>(Spin::kYieldsPerCheck));
}

TEST(Spin, ZeroSleepsAtOnceAndInfiniteNever) {
  CountingClock clock;
  for (const Cores cores : {Cores::enough, Cores::crowded}) {
    Spin none(0ns, cores, clock);
    EXPECT_EQ(none.next(), Step::sleep);
    none.reset();
    EXPECT_EQ(none.next(), Step::sleep);

    Spin forever(Nanos::max(), cores, clock);
    for (int i = 0; i < 1000; ++i) {
      ASSERT_NE(forever.next(), Step::sleep);
      clock.time += 1h;
    }
  }
  EXPECT_EQ(clock.num_reads, 0);
}

}  // namespace
}  // namespace weft
