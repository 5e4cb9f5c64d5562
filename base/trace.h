#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"

namespace weft {

/// One number that an event carries. `key` must be a literal, or come from Trace::keep().
struct TraceArgument {
  std::string_view key;
  std::uint64_t value = 0;
};

/// Something that lasted from `begin` to `end` on one lane of this rank.
struct TraceEvent {
  static constexpr std::size_t kMaxArguments = 4;
  std::string_view name;  ///< A literal, or from Trace::keep().
  std::uint32_t lane = 0;
  std::uint32_t num_arguments = 0;
  Nanos begin{0};
  Nanos end{0};
  std::array<TraceArgument, kMaxArguments> arguments{};
};

/// Records what happened when, for chrome://tracing and ui.perfetto.dev. All memory is taken at the start; when it is
/// full, the oldest events make room. A default-made Trace is disabled and costs a predictable branch per event.
///
/// Times are those of the monotonic clock, so the files of the ranks of one host lie on one axis.
/// Thread: loop (one writer), or any for a disabled one.
/// Source: Trace Event Format, "complete" events (ph X): pid is the rank, tid the lane.
class Trace {
 public:
  struct Options {
    /// "%r" stands for the rank; without it, a job of several ranks gets ".<rank>" at the end. The second trace of a
    /// process that has the same path gets ".2" after that, and so on.
    std::string path;
    Rank rank{0};
    RankCount ranks{1};
    std::size_t max_events = 65536;  ///< About 150 bytes each; at least 1.
    const Clock* clock = nullptr;    ///< Null: steady_clock().
  };

  /// Disabled: records nothing, writes nothing.
  Trace() noexcept;
  /// Creates the file now, so that a wrong path is known at the start of a job and not at its end.
  /// Errors: system — the file cannot be created; invalid_argument — no room for an event was asked for.
  static Result<Trace> create(const Options& options);
  /// Closes; an error then is logged.
  ~Trace();
  Trace(Trace&&) noexcept;
  Trace& operator=(Trace&&) noexcept;

  [[nodiscard]] bool is_enabled() const noexcept { return recorder_ != nullptr; }
  /// The time for begin and end of an event; zero without a look at the clock if disabled.
  [[nodiscard]] Nanos now() const noexcept { return is_enabled() ? read_clock() : Nanos::zero(); }
  /// Records `event`. Never allocates.
  void record(const TraceEvent& event) noexcept {
    if (is_enabled()) [[unlikely]] {
      store(event);
    }
  }
  /// A copy of `text` that lives as long as this Trace, for names that are made at run time; equal texts share one.
  std::string_view keep(std::string_view text);

  /// Where the trace goes, with the rank filled in; empty if disabled.
  [[nodiscard]] const std::string& path() const noexcept;
  /// Writes the file and disables. Idempotent. Errors: system — the file could not be written.
  Status close();

 private:
  struct Recorder;
  [[nodiscard]] Nanos read_clock() const noexcept;
  void store(const TraceEvent& event) noexcept;
  std::unique_ptr<Recorder> recorder_;
};

/// Records the event that lasts as long as this object.
class TraceSpan {
 public:
  TraceSpan(Trace& trace, std::string_view name, std::uint32_t lane) noexcept : trace_(trace) {
    if (!trace.is_enabled()) return;
    event_.name = name;
    event_.lane = lane;
    event_.begin = trace.now();
  }
  ~TraceSpan() {
    if (!trace_.is_enabled()) return;
    event_.end = trace_.now();
    trace_.record(event_);
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

  /// Adds a number to the event; those beyond TraceEvent::kMaxArguments are left out.
  void argument(std::string_view key, std::uint64_t value) noexcept {
    if (!trace_.is_enabled() || event_.num_arguments == TraceEvent::kMaxArguments) return;
    event_.arguments[event_.num_arguments++] = {key, value};
  }

 private:
  Trace& trace_;
  TraceEvent event_;
};

}  // namespace weft
