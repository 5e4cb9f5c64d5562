#pragma once

#include <chrono>
#include <cstdint>

namespace weft {

using Nanos = std::chrono::nanoseconds;

/// Monotonic time as a seam: real in production, virtual in the simulation.
/// Wall-clock time is never used for a timeout (CASES: H06, clock jump).
class Clock {
 public:
  virtual ~Clock() = default;
  /// Time since an arbitrary fixed point; never goes back. Thread: any.
  [[nodiscard]] virtual Nanos now() const noexcept = 0;
};

/// CLOCK_MONOTONIC. Thread: any.
const Clock& steady_clock() noexcept;

/// A point in monotonic time until which a wait may last.
class Deadline {
 public:
  /// Never passes.
  static constexpr Deadline never() noexcept { return Deadline{Nanos::max()}; }
  /// Passes `wait` from now on `clock`; saturates at never.
  static Deadline after(Nanos wait, const Clock& clock = steady_clock()) noexcept {
    const Nanos now = clock.now();
    return Deadline{wait > Nanos::max() - now ? Nanos::max() : now + wait};
  }
  [[nodiscard]] constexpr bool is_never() const noexcept { return at_ == Nanos::max(); }
  [[nodiscard]] bool has_passed(const Clock& clock = steady_clock()) const noexcept {
    return !is_never() && clock.now() >= at_;
  }
  /// What is left, never negative.
  [[nodiscard]] Nanos remaining(const Clock& clock = steady_clock()) const noexcept {
    if (is_never()) return Nanos::max();
    const Nanos now = clock.now();
    return now >= at_ ? Nanos::zero() : at_ - now;
  }
  [[nodiscard]] constexpr Nanos at() const noexcept { return at_; }

 private:
  constexpr explicit Deadline(Nanos at) : at_(at) {}
  Nanos at_;
};

}  // namespace weft
