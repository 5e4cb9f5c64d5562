#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/contract/contract_backends.h"

// How a rank sleeps and what wakes it.
namespace weft::transport::contract {
namespace {

using namespace std::chrono_literals;
using Kind = Completion::Kind;

#define WEFT_SKIP_WITHOUT_THREADS() \
  if (!GetParam().has_threads) GTEST_SKIP() << "the simulation has one thread and no real time"

bool becomes_readable(int fd, int timeout_ms) {
  pollfd one{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, timeout_ms) == 1;
}

Nanos cpu_time_of_this_thread() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         std::chrono::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/// One rank in its own thread: polls, and sleeps whenever there is nothing.
class Sleeper {
 public:
  Sleeper(Transport& transport, Wake wake) : transport_(transport), wake_(wake) {}

  /// Polls until something comes; counts sleeps that ended by their limit although something was there.
  Completion wait() {
    for (;;) {
      if (next_ < got_) return out_[next_++];
      got_ = transport_.poll(out_);
      next_ = 0;
      if (got_ > 0) continue;
      if (!transport_.arm(wake_)) continue;
      const Deadline deadline = Deadline::after(kLimit);
      if (wake_ == Wake::by_sleep) {
        transport_.sleep(kLimit);
      } else {
        becomes_readable(transport_.event_fd(), static_cast<int>(kLimit / 1ms));
      }
      transport_.disarm();
      ++sleeps_;
      overslept_ += deadline.has_passed() ? 1 : 0;
    }
  }
  [[nodiscard]] int sleeps() const { return sleeps_; }
  [[nodiscard]] int overslept() const { return overslept_; }

 private:
  static constexpr Nanos kLimit = 3s;
  Transport& transport_;
  Wake wake_;
  std::array<Completion, 4> out_;
  std::size_t next_ = 0;
  std::size_t got_ = 0;
  int sleeps_ = 0;
  int overslept_ = 0;
};

TEST_P(TransportContract, AMessageWakesTheEventFd) {
  drive_for(5ms);
  ASSERT_TRUE(transport(kA).arm(Wake::by_event_fd));
  EXPECT_FALSE(becomes_readable(transport(kA).event_fd(), 10)) << "awake without a reason";
  ASSERT_FALSE(link(kB, kA).post_message(pattern(1, 8), {}).value() == Posted::again);
  const Deadline deadline = Deadline::after(5s);
  while (!becomes_readable(transport(kA).event_fd(), 0) && !deadline.has_passed()) {
    poll(kB);
    rig_->progress();
  }
  EXPECT_TRUE(becomes_readable(transport(kA).event_fd(), 0)) << "level-triggered";
  transport(kA).disarm();
  transport(kA).disarm();
  drive_until([&] { return count(kA, Kind::message) == 1; });
  drive_for(5ms);
  EXPECT_TRUE(transport(kA).arm(Wake::by_event_fd)) << "nothing is left";
  EXPECT_FALSE(becomes_readable(transport(kA).event_fd(), 10));
  transport(kA).disarm();
}

TEST_P(TransportContract, ArmSeesWhatIsThereOrSleepEndsAtOnce) {
  ASSERT_EQ(*link(kB, kA).post_message(pattern(1, 8), {}), Posted::started);
  poll(kB);
  const Deadline deadline = Deadline::after(5s);
  if (transport(kA).arm(Wake::by_sleep)) {
    transport(kA).sleep(10s);
    transport(kA).disarm();
  }
  EXPECT_FALSE(deadline.has_passed());
  drive_until([&] { return count(kA, Kind::message) == 1; });
}

TEST_P(TransportContract, AnIdleSleepEndsByItsLimitAndBurnsNothing) {
  WEFT_SKIP_WITHOUT_THREADS();
  drive_for(5ms);
  const Nanos begin = steady_clock().now();
  const Nanos cpu_begin = cpu_time_of_this_thread();
  int sleeps = 0;
  while (steady_clock().now() - begin < 300ms) {
    poll(kA);
    if (!transport(kA).arm(Wake::by_sleep)) continue;
    transport(kA).sleep(50ms);
    transport(kA).disarm();
    ++sleeps;
  }
  EXPECT_GE(sleeps, 1);
  EXPECT_LE(sleeps, 30) << "sleeps end without a reason";
  EXPECT_LT(cpu_time_of_this_thread() - cpu_begin, 60ms);
}

TEST_P(TransportContract, NoWakeupIsLostBetweenTwoSleepers) {
  WEFT_SKIP_WITHOUT_THREADS();
  constexpr std::uint32_t kRounds = 2000;
  for (const Wake wake : {Wake::by_sleep, Wake::by_event_fd}) {
    std::atomic<int> overslept = 0;
    const auto run = [&](Rank rank, Rank peer, bool begins) {
      Sleeper sleeper(transport(rank), wake);
      for (std::uint32_t i = 0; i < kRounds; ++i) {
        if (begins) {
          EXPECT_EQ(*link(rank, peer).post_message(std::as_bytes(std::span(&i, 1)), {}), Posted::started);
        }
        const Completion done = sleeper.wait();
        EXPECT_EQ(done.kind, Kind::message);
        EXPECT_TRUE(std::ranges::equal(done.message, std::as_bytes(std::span(&i, 1))));
        if (!begins) {
          EXPECT_EQ(*link(rank, peer).post_message(std::as_bytes(std::span(&i, 1)), {}), Posted::started);
        }
      }
      overslept += sleeper.overslept();
    };
    std::thread other(run, kB, kA, false);
    run(kA, kB, true);
    other.join();
    EXPECT_EQ(overslept, 0) << "a sleeper was not woken";
  }
}

TEST_P(TransportContract, ALongWriteMovesOnWhileBothEndsSleep) {
  WEFT_SKIP_WITHOUT_THREADS();
  if (capabilities().large_path != LargePath::write) GTEST_SKIP() << "this link moves large data by reads";
  constexpr std::size_t kSize = 32 << 20;
  for (const Wake wake : {Wake::by_sleep, Wake::by_event_fd}) {
    const Block& source = block(kA, kSize);
    const Block& destination = block(kB, kSize);
    fill_pattern(source.bytes, 1);
    std::atomic<int> overslept = 0;
    std::thread receiver([&] {
      Sleeper sleeper(transport(kB), wake);
      const Completion done = sleeper.wait();
      EXPECT_EQ(done.kind, Kind::notice);
      EXPECT_TRUE(std::ranges::equal(source.bytes, destination.bytes));
      overslept += sleeper.overslept();
    });
    Sleeper sleeper(transport(kA), wake);
    EXPECT_EQ(*link(kA, kB).post_write(source.local(0, kSize), destination.remote(0, kSize), 1, Token{1'000'000}),
              Posted::started);
    EXPECT_EQ(sleeper.wait().kind, Kind::written);
    receiver.join();
    EXPECT_EQ(overslept + sleeper.overslept(), 0);
  }
}

TEST_P(TransportContract, TheEndOfALinkWakes) {
  WEFT_SKIP_WITHOUT_THREADS();
  for (const Wake wake : {Wake::by_sleep, Wake::by_event_fd}) {
    for (const Kind end : {Kind::closed, Kind::failed}) {
      start(2);
      std::thread other([&] {
        Sleeper sleeper(transport(kA), wake);
        EXPECT_EQ(sleeper.wait().kind, end);
        EXPECT_EQ(sleeper.overslept(), 0);
      });
      std::this_thread::sleep_for(20ms);
      if (end == Kind::failed) {
        kill(kB);
      } else {
        link(kB, kA).close();
        std::array<Completion, 1> none;
        for (int i = 0; i < 100; ++i) (void)transport(kB).poll(none);
      }
      other.join();
    }
  }
}

}  // namespace
}  // namespace weft::transport::contract
