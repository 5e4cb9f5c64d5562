// One-sided puts with signals. A put of at most the eager limit, or into memory that the link cannot write, travels as
// `put` messages that the target's engine copies; a larger one on a `write` link is one transport write with a notice;
// into shared memory it is a copy by the source itself. A signal is always a message.
//
// Order: puts to one peer are posted in the order of their calls, and their signals count in that order. Messages stay
// in order by themselves; writes overtake messages and each other, so each write's notice has a number, and a signal
// says how many writes were posted before it: it counts once these have arrived. The end of a window does the same.
#include <algorithm>

#include <fmt/format.h>

#include "collectives/engine/engine.h"
#include "collectives/engine/window.h"
#include "device/devices.h"

namespace weft::collectives::engine {
namespace {

/// Puts are operations without steps, so that requests, failure and collection are the same for all.
const Program& put_program() {
  static const Program kProgram = [] {
    Program made;
    made.label = "put";
    made.algorithm = "put";
    made.slicing.in_flight = 0;
    return made;
  }();
  return kProgram;
}

}  // namespace

Result<RequestId> Engine::start_put(std::uint32_t window, const void* source, std::uint64_t size_bytes, Rank peer,
                                    std::uint64_t offset, bool with_signal) {
  if (failure_) return *failure_;
  if (window >= windows_.size() || !windows_[window].is_open) {
    return Error{ErrorCode::invalid_argument, fmt::format("put: window {} is not open", window)};
  }
  const RemoteWindow& remote = windows_[window].remote[peer.index()];
  if (offset > remote.size_bytes || size_bytes > remote.size_bytes - offset) {
    return Error{ErrorCode::out_of_range,
                 fmt::format("put of {} bytes at offset {} leaves the window of {}, which has {} bytes", size_bytes,
                             offset, links_[peer.index()].name, remote.size_bytes)};
  }
  const Link& link = links_[peer.index()];
  const bool is_written = size_bytes > link.eager_limit && remote.is_writable && !remote.is_shared;
  const bool is_copied = link.endpoint == nullptr || (size_bytes > link.eager_limit && remote.is_shared);
  std::byte* bounce = nullptr;
  if (size_bytes > 0 && !is_copied && !(is_written && link.capabilities.moves_device_memory) &&
      device::owner_of(static_cast<const std::byte*>(source)) != nullptr) {
    WEFT_TRY_ASSIGN(bounce, arena_.acquire(size_bytes));
    copy_now(bounce, static_cast<const std::byte*>(source), size_bytes);
    source = bounce;
  }
  Operation& operation = *acquire_operation(put_program(), Channel::point_to_point, nullptr, nullptr);
  if (free_puts_.empty()) {
    free_puts_.push_back(static_cast<std::uint32_t>(puts_.size()));
    puts_.emplace_back();
    free_puts_.reserve(puts_.size());
  }
  const std::uint32_t token = free_puts_.back();
  free_puts_.pop_back();
  Put& put = puts_[token];
  put = Put{};
  put.in_use = true;
  put.token = token;
  put.window = window;
  put.peer = peer.value();
  put.source = static_cast<const std::byte*>(source);
  put.size_bytes = size_bytes;
  put.bounce = bounce;
  put.offset = offset;
  put.with_signal = with_signal;
  put.operation = &operation;
  ++num_puts_;
  links_[peer.index()].puts.push_back(token);
  const RequestId request{operation.index, operation.generation};
  run_puts(links_[peer.index()]);
  return request;
}

void Engine::run_puts(Link& link) {
  while (!link.puts.empty() && !failure_) {
    Put& put = puts_[link.puts.front()];
    run_put(put);
    if (!put.is_out || failure_) return;
    link.puts.erase(link.puts.begin());
    if (!put.is_write || put.is_written) finish_put(put);
  }
}

void Engine::run_put(Put& put) {
  if (put.is_revoked) return;
  Link& link = links_[put.peer];
  Window& window = windows_[put.window];
  const RemoteWindow& remote = window.remote[put.peer];
  if (link.endpoint == nullptr) {
    if (put.size_bytes > 0) copy_now(window.base + put.offset, put.source, put.size_bytes);
    if (put.with_signal) ++window.signals[put.peer];
    put.is_out = true;
    return;
  }
  const bool is_large = put.size_bytes > link.eager_limit;
  if (!put.bytes_done && is_large && remote.is_writable && !remote.is_shared) {
    post_put_write(put);
    if (!put.bytes_done) return;
  }
  if (!put.bytes_done && is_large && remote.is_shared) {
    const auto target = link.endpoint->load_pointer({remote.key, put.offset, put.size_bytes});
    if (!target) return refused(link, target.error());
    copy_now(*target, put.source, put.size_bytes);
    put.bytes_done = true;
    if (link.endpoint->is_revoked()) {
      // The peer failed, and its window may be gone already.
      put.is_revoked = true;
      if (link.is_closed) fail_at(link, Error{ErrorCode::closed, "the peer closed the link"});
      return;
    }
  }
  MessageHeaderWire header;
  header.transfer = put.window;
  while (!put.bytes_done) {
    const std::uint64_t size = std::min(put.size_bytes - put.progress_bytes, link.payload_max);
    header.kind = MessageKind::put;
    const std::uint64_t offset = put.offset + put.progress_bytes;
    header.sequence = static_cast<std::uint32_t>(offset);
    header.slice = static_cast<std::uint32_t>(offset >> 32);
    if (size > 0 && !post(link, header, {put.source + put.progress_bytes, size})) return;
    put.progress_bytes += size;
    put.bytes_done = put.progress_bytes == put.size_bytes;
  }
  if (put.with_signal) {
    header.kind = MessageKind::signal;
    header.sequence = window.writes_sent[put.peer];
    header.slice = 0;
    if (!post(link, header, {})) return;
  }
  put.is_out = true;
}

void Engine::post_put_write(Put& put) {
  Link& link = links_[put.peer];
  Window& window = windows_[put.window];
  const RemoteWindow& remote = window.remote[put.peer];
  if (!put.registration) {
    auto* base = const_cast<std::byte*>(put.source);  // NOLINT(cppcoreguidelines-pro-type-const-cast): only read.
    const device::MemoryKind kind =
        device::owner_of(base) != nullptr ? device::MemoryKind::device : options_.memory->kind_of(base, put.size_bytes);
    auto registration = link.transport->register_memory(base, put.size_bytes, kind);
    if (!registration) return fail_at(link, registration.error());
    put.registration = *registration;
  }
  const std::uint32_t number = window.writes_sent[put.peer] % kWriteNumbers;
  const auto posted = link.endpoint->post_write(
      {&*put.registration, 0, put.size_bytes}, {remote.key, put.offset, put.size_bytes},
      kWindowNotice | number << kWindowBits | put.window, transport::Token{kPutToken | put.token});
  if (!posted) return refused(link, posted.error());
  if (*posted == transport::Posted::again) return;
  ++window.writes_sent[put.peer];
  put.is_write = true;
  put.bytes_done = true;
}

void Engine::put_written(std::uint32_t token) {
  if (token >= puts_.size() || !puts_[token].in_use) return;
  puts_[token].is_written = true;
  if (puts_[token].is_out) finish_put(puts_[token]);
}

void Engine::finish_put(Put& put) {
  end_put(put);
  if (put.operation->in_flight) finish(*put.operation);
}

void Engine::end_put(Put& put) {
  // A put that failed may still be read from: its bounce is not given out again.
  if (put.bounce != nullptr && !failure_) arena_.release(put.bounce);
  if (put.registration) links_[put.peer].transport->release_memory(*put.registration);
  put.registration.reset();
  put.in_use = false;
  free_puts_.push_back(put.token);  // Cannot allocate: there is room for every put.
  --num_puts_;
}

void Engine::copy_now(std::byte* to, const std::byte* from, std::uint64_t size_bytes) {
  device::Device* device = device::owner_of(to);
  if (device == nullptr) device = device::owner_of(from);
  if (device == nullptr) device = &device::host_device();
  const device::Ticket ticket = device->copy(to, from, size_bytes);
  while (!device->is_done(ticket)) {
  }
}

void Engine::progress_puts() {
  for (Link& link : links_) {
    if (!link.puts.empty() && !failure_) run_puts(link);
  }
}

}  // namespace weft::collectives::engine
