#include "base/clock.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

using namespace std::chrono_literals;

class HandClock final : public Clock {
 public:
  [[nodiscard]] Nanos now() const noexcept override { return time; }
  Nanos time{5s};
};

TEST(Deadline, PassesWhenItsTimeIsOver) {
  HandClock clock;
  const Deadline deadline = Deadline::after(2s, clock);
  EXPECT_FALSE(deadline.has_passed(clock));
  EXPECT_EQ(deadline.remaining(clock), 2s);
  clock.time += 2s - 1ns;
  EXPECT_FALSE(deadline.has_passed(clock));
  clock.time += 1ns;
  EXPECT_TRUE(deadline.has_passed(clock));
  clock.time += 1h;
  EXPECT_EQ(deadline.remaining(clock), 0s) << "never negative";
}

TEST(Deadline, SaturatesAtNever) {
  HandClock clock;
  EXPECT_TRUE(Deadline::after(Nanos::max(), clock).is_never());
  EXPECT_TRUE(Deadline::after(Nanos::max() - 4s, clock).is_never());
  clock.time = Nanos::max();
  EXPECT_FALSE(Deadline::never().has_passed(clock));
  EXPECT_EQ(Deadline::never().remaining(clock), Nanos::max());
}

TEST(Clock, SteadyTimeNeverGoesBack) {
  Nanos last = steady_clock().now();
  for (int i = 0; i < 1000; ++i) {
    const Nanos now = steady_clock().now();
    ASSERT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace weft
