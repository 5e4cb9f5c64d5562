#pragma once

#include <cstdint>

#include "base/clock.h"

namespace weft {

/// Whether every rank that shares a machine's cores can run at the same time (base/cores.h judges it).
enum class Cores : std::uint8_t {
  enough,   ///< Each has a core of its own: polling costs nobody anything.
  crowded,  ///< There are more ranks than cores: polling takes the time of the rank that is waited for.
};

/// Tells the processor that this is a waiting loop: saves power, frees the core's other thread. Takes 10 to 40 ns.
inline void cpu_pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// How a waiting rank waits: it polls for a while, then sleeps. Ask next() after each poll that found nothing and
/// reset() after one that found something (or to begin anew).
///
/// The clock is read once in kPollsPerCheck polls, so the spin time is kept to within that many polls.
/// Thread: loop.
class Spin {
 public:
  enum class Step : std::uint8_t {
    poll,   ///< pause(), then poll again.
    yield,  ///< sched_yield(), then poll again.
    sleep,  ///< Sleep until something happens; repeated until reset().
  };
  /// A poll of the links takes 20 to 100 ns: a check in 32 of them comes about every 2 us, and a look at the clock
  /// (25 ns) costs 1 ns per poll.
  static constexpr std::uint32_t kPollsPerCheck = 32;
  /// A yield is a system call of 0.3 us or more and lets others run: the clock is cheap next to it.
  static constexpr std::uint32_t kYieldsPerCheck = 4;

  /// So many polls follow each other at once. Measured: 5 ns of 250 for an 8-byte all-reduce of two ranks.
  static constexpr std::uint32_t kEagerPolls = 8;

  /// After so many empty polls (5 to 25 us) even a rank with a core of its own yields between polls: other processes
  /// may have driven the rank that is waited for onto this very core, and then polling keeps it from answering. Where
  /// nobody else wants the core, a yield returns at once. A multiple of both intervals.
  static constexpr std::uint32_t kPolitePolls = 256;

  /// `spin_time` zero sleeps at once, Nanos::max() never. `clock` must outlive this.
  explicit Spin(Nanos spin_time, Cores cores, const Clock& clock = steady_clock()) noexcept
      : clock_(&clock), spin_time_(spin_time), cores_(cores) {}

  /// Something was found: the next wait begins from the start.
  void reset() noexcept { num_empty_ = 0; }

  /// What to do after a poll that found nothing.
  [[nodiscard]] Step next() noexcept {
    const bool yields = cores_ == Cores::crowded || num_empty_ >= kPolitePolls;
    const std::uint32_t interval = yields ? kYieldsPerCheck : kPollsPerCheck;
    if (num_empty_ % interval == 0 && is_over()) return Step::sleep;
    ++num_empty_;
    return yields ? Step::yield : Step::poll;
  }

  /// What Step::poll does between two polls: nothing at first, when the answer may be less than a pause away.
  void pause() const noexcept {
    if (num_empty_ > kEagerPolls) cpu_pause();
  }

  [[nodiscard]] Cores cores() const noexcept { return cores_; }
  [[nodiscard]] Nanos spin_time() const noexcept { return spin_time_; }

 private:
  /// Invariant: whoever sleeps has num_empty_ at a multiple of the interval, so the next ask comes here again.
  bool is_over() noexcept {
    if (spin_time_ == Nanos::zero()) return true;
    if (spin_time_ == Nanos::max()) return false;
    // The first poll of a wait, which is often the only one, does not look at the clock: time runs from the second
    // check.
    if (num_empty_ == 0) return false;
    const std::uint32_t interval = cores_ == Cores::crowded ? kYieldsPerCheck : kPollsPerCheck;
    if (num_empty_ == interval) {
      started_ = clock_->now();
      return false;
    }
    return clock_->now() - started_ >= spin_time_;
  }

  const Clock* clock_;
  Nanos spin_time_;
  Nanos started_{0};
  std::uint64_t num_empty_ = 0;
  Cores cores_;
};

}  // namespace weft
