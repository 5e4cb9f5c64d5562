#include "base/trace.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "base/text.h"

namespace weft {

struct Trace::Recorder {
  Recorder(const Options& options, std::string file_path, int file)
      : path(std::move(file_path)),
        rank(options.rank),
        clock(options.clock != nullptr ? options.clock : &steady_clock()),
        ring(options.max_events),
        file_descriptor(file) {}

  std::string path;
  Rank rank;
  const Clock* clock;
  std::vector<TraceEvent> ring;    ///< Event i of all that were recorded lies at i % ring.size().
  std::uint64_t num_recorded = 0;  ///< Invariant: the last min(num_recorded, ring.size()) of them are in the ring.
  std::set<std::string, std::less<>> texts;
  int file_descriptor;
};

namespace {

std::string path_of_rank(const Trace::Options& options) {
  const std::string rank = std::to_string(options.rank.value());
  std::string path = options.path;
  bool has_rank = false;
  for (auto at = path.find("%r"); at != std::string::npos; at = path.find("%r", at + rank.size())) {
    path.replace(at, 2, rank);
    has_rank = true;
  }
  // Otherwise the ranks would write over each other's file.
  if (!has_rank && options.ranks.value() > 1) path += "." + rank;
  return path;
}

/// `path`, or with ".2", ".3", ... at the end if this process has traced to it before: every communicator has a
/// trace of its own, and WEFT_TRACE_FILE is the same for all of them.
std::string unused_path(const std::string& path) {
  static std::mutex mutex;
  static auto& times_used = *new std::map<std::string, std::uint32_t>;
  const std::lock_guard lock(mutex);
  const std::uint32_t times = ++times_used[path];
  return times == 1 ? path : fmt::format("{}.{}", path, times);
}

/// Microseconds, the format's unit, with the nanoseconds as fraction.
void append_micros(fmt::memory_buffer& out, Nanos time) {
  const std::int64_t count = time.count() < 0 ? 0 : time.count();
  fmt::format_to(std::back_inserter(out), "{}.{:03}", count / 1000, count % 1000);
}

void append_event(fmt::memory_buffer& out, const TraceEvent& event, Rank rank) {
  fmt::format_to(std::back_inserter(out),
                 ",\n{{\"ph\": \"X\", \"name\": {}, \"pid\": {}, \"tid\": {}, \"ts\": ", json_string(event.name),
                 rank.value(), event.lane);
  append_micros(out, event.begin);
  fmt::format_to(std::back_inserter(out), ", \"dur\": ");
  append_micros(out, event.end - event.begin);
  fmt::format_to(std::back_inserter(out), ", \"args\": {{");
  const std::size_t num_arguments = std::min<std::size_t>(event.num_arguments, TraceEvent::kMaxArguments);
  for (std::size_t i = 0; i < num_arguments; ++i) {
    const TraceArgument& argument = event.arguments[i];
    fmt::format_to(std::back_inserter(out), "{}{}: {}", i == 0 ? "" : ", ", json_string(argument.key), argument.value);
  }
  fmt::format_to(std::back_inserter(out), "}}}}");
}

/// A "metadata" event (ph M), which names a process or a lane.
void append_name(fmt::memory_buffer& out, std::string_view what, Rank rank, std::uint32_t lane, std::string_view name) {
  fmt::format_to(std::back_inserter(out),
                 "{{\"ph\": \"M\", \"name\": \"{}\", \"pid\": {}, \"tid\": {}, \"args\": {{\"name\": {}}}}}", what,
                 rank.value(), lane, json_string(name));
}

int write_all(int file, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

Trace::Trace() noexcept = default;
Trace::Trace(Trace&&) noexcept = default;

Trace& Trace::operator=(Trace&& other) noexcept {
  if (this != &other) {
    if (const Status closed = close(); !closed) log::error("{}", closed.error().message());
    recorder_ = std::move(other.recorder_);
  }
  return *this;
}

Trace::~Trace() {
  if (const Status closed = close(); !closed) log::error("{}", closed.error().message());
}

Result<Trace> Trace::create(const Options& options) {
  if (options.max_events == 0) return Error{ErrorCode::invalid_argument, "a trace needs room for at least one event"};
  std::string path = unused_path(path_of_rank(options));
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) {
    return Error::from_errno(ErrorCode::system, fmt::format("create the trace file {}", in_quotes(path, 256)), errno,
                             "Check WEFT_TRACE_FILE");
  }
  Trace trace;
  trace.recorder_ = std::make_unique<Recorder>(options, std::move(path), file);
  return trace;
}

Nanos Trace::read_clock() const noexcept { return recorder_->clock->now(); }

void Trace::store(const TraceEvent& event) noexcept {
  Recorder& recorder = *recorder_;
  recorder.ring[recorder.num_recorded % recorder.ring.size()] = event;
  ++recorder.num_recorded;
}

std::string_view Trace::keep(std::string_view text) {
  if (!is_enabled()) return {};
  const auto found = recorder_->texts.find(text);
  return found != recorder_->texts.end() ? *found : *recorder_->texts.emplace(text).first;
}

const std::string& Trace::path() const noexcept {
  static const std::string kNone;
  return is_enabled() ? recorder_->path : kNone;
}

Status Trace::close() {
  if (!is_enabled()) return {};
  const std::unique_ptr<Recorder> recorder = std::move(recorder_);
  const std::size_t room = recorder->ring.size();
  const std::uint64_t num_kept = recorder->num_recorded < room ? recorder->num_recorded : room;
  const std::uint64_t first = recorder->num_recorded - num_kept;

  fmt::memory_buffer out;
  fmt::format_to(std::back_inserter(out),
                 "{{\"displayTimeUnit\": \"ns\", \"otherData\": {{\"dropped_events\": {}}}, \"traceEvents\": [\n",
                 first);
  append_name(out, "process_name", recorder->rank, 0, fmt::format("rank {}", recorder->rank.value()));
  std::set<std::uint32_t> lanes;
  for (std::uint64_t i = first; i < recorder->num_recorded; ++i) lanes.insert(recorder->ring[i % room].lane);
  for (const std::uint32_t lane : lanes) {
    fmt::format_to(std::back_inserter(out), ",\n");
    append_name(out, "thread_name", recorder->rank, lane, fmt::format("lane {}", lane));
  }

  int failed = 0;
  for (std::uint64_t i = first; i < recorder->num_recorded && failed == 0; ++i) {
    append_event(out, recorder->ring[i % room], recorder->rank);
    // In pieces, so that a long trace does not double the memory at its end.
    if (out.size() < 1U << 16) continue;
    failed = write_all(recorder->file_descriptor, {out.data(), out.size()});
    out.clear();
  }
  fmt::format_to(std::back_inserter(out), "\n]}}\n");
  if (failed == 0) failed = write_all(recorder->file_descriptor, {out.data(), out.size()});
  // A full disk of a network file system is reported by close().
  if (::close(recorder->file_descriptor) != 0 && failed == 0) failed = errno;
  if (failed == 0) return {};
  return Error::from_errno(ErrorCode::system, fmt::format("write the trace file {}", in_quotes(recorder->path, 256)),
                           failed);
}

}  // namespace weft
