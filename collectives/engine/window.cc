// One-sided puts with signals. A put of at most the eager limit, or into memory that the link cannot write, travels as
// `put` messages that the target's engine copies; a larger one on a `write` link is one transport write whose notice is
// the signal; into shared memory it is a copy by the source itself, and a `signal` message. Every write carries a
// notice, a silent one if there is no signal, so that the target can count what has arrived before it closes the
// window.
#include "collectives/engine/window.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "collectives/engine/engine.h"
#include "device/devices.h"

namespace weft::collectives::engine {
namespace {

/// Puts are operations without steps, so that requests, failure and collection are the same for all.
const Program& put_program() {
  static const Program program = [] {
    Program made;
    made.label = "put";
    made.algorithm = "put";
    made.slicing.in_flight = 0;
    return made;
  }();
  return program;
}

}  // namespace

Status Engine::open_window(std::uint32_t window, std::byte* base, std::uint64_t size_bytes) {
  if (failure_) return *failure_;
  if (windows_.size() <= window) windows_.resize(window + 1);
  Window& opened = windows_[window];
  opened = Window{};
  opened.is_open = true;
  opened.base = base;
  opened.size_bytes = size_bytes;
  opened.remote.resize(links_.size());
  opened.signals.resize(links_.size());
  opened.writes_sent.resize(links_.size());
  opened.writes_arrived.resize(links_.size());
  opened.writes_expected.resize(links_.size());
  opened.has_closed.resize(links_.size());
  opened.is_told.resize(links_.size());
  return {};
}

Result<Engine::RemoteWindow> Engine::window_for(std::uint32_t window, Rank peer) {
  Window& opened = windows_[window];
  const Link& link = links_[peer.index()];
  RemoteWindow remote;
  remote.size_bytes = opened.size_bytes;
  if (link.endpoint == nullptr || opened.size_bytes == 0) return remote;
  device::Device* device = device::owner_of(opened.base);
  if (device != nullptr && !link.capabilities.moves_device_memory) return remote;
  std::optional<transport::Registration>& registration = opened.registrations[link.transport_index];
  if (!registration) {
    const device::MemoryKind kind =
        device != nullptr ? device::MemoryKind::device : options_.memory->kind_of(opened.base, opened.size_bytes);
    WEFT_TRY_ASSIGN(registration, link.transport->register_memory(opened.base, opened.size_bytes, kind));
  }
  remote.key = registration->key;
  remote.is_shared = registration->kind == device::MemoryKind::shared && link.capabilities.maps_shared_memory;
  remote.is_writable = remote.is_shared || link.capabilities.large_path == transport::LargePath::write;
  return remote;
}

void Engine::set_remote_window(std::uint32_t window, Rank peer, RemoteWindow remote) {
  windows_[window].remote[peer.index()] = remote;
}

void Engine::start_closing_window(std::uint32_t window) {
  Window& closing = windows_[window];
  if (!closing.is_open || closing.is_closing || failure_) return;
  closing.is_closing = true;
  ++num_windows_closing_;
  tell_closing_windows();
}

void Engine::tell_closing_windows() {
  for (std::uint32_t number = 0; number < windows_.size(); ++number) {
    Window& window = windows_[number];
    if (!window.is_closing || failure_) continue;
    bool are_all_told = true;
    for (std::uint32_t rank = 0; rank < links_.size(); ++rank) {
      if (links_[rank].endpoint == nullptr || window.is_told[rank]) continue;
      MessageHeaderWire header;
      header.kind = MessageKind::window_closing;
      header.transfer = number;
      header.sequence = window.writes_sent[rank];
      window.is_told[rank] = post(links_[rank], header, {});
      if (failure_) return;
      are_all_told = are_all_told && window.is_told[rank];
    }
    if (!are_all_told) continue;
    window.is_closing = false;
    --num_windows_closing_;
  }
}

void Engine::window_closing(Link& link, Rank peer, const MessageHeaderWire& header) {
  if (header.transfer >= windows_.size() || !windows_[header.transfer].is_open) {
    return protocol_error(link, "the end of a window that is not open");
  }
  windows_[header.transfer].has_closed[peer.index()] = true;
  windows_[header.transfer].writes_expected[peer.index()] = header.sequence;
}

bool Engine::is_window_quiet(std::uint32_t number) const noexcept {
  const Window& window = windows_[number];
  if (window.is_closing) return false;
  for (std::uint32_t rank = 0; rank < links_.size(); ++rank) {
    if (links_[rank].endpoint == nullptr) continue;
    if (!window.has_closed[rank] || window.writes_arrived[rank] != window.writes_expected[rank]) return false;
  }
  return true;
}

void Engine::close_window(std::uint32_t window) {
  if (window >= windows_.size() || !windows_[window].is_open) return;
  Window& closed = windows_[window];
  for (std::size_t index = 0; index < options_.transports.size(); ++index) {
    if (closed.registrations[index]) options_.transports[index]->release_memory(*closed.registrations[index]);
  }
  if (closed.is_closing) --num_windows_closing_;
  closed = Window{};
}

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
  std::uint32_t token = 0;
  while (token < puts_.size() && puts_[token].in_use) ++token;
  if (token == puts_.size()) puts_.emplace_back();
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
  const RequestId request{operation.index, operation.generation};
  run_put(put);
  return request;
}

void Engine::run_put(Put& put) {
  Link& link = links_[put.peer];
  Window& window = windows_[put.window];
  const RemoteWindow& remote = window.remote[put.peer];
  if (link.endpoint == nullptr) {
    if (put.size_bytes > 0) copy_now(window.base + put.offset, put.source, put.size_bytes);
    if (put.with_signal) ++window.signals[put.peer];
    return finish_put(put);
  }
  MessageHeaderWire header;
  header.transfer = put.window;
  if (!put.bytes_done && put.size_bytes > link.eager_limit && remote.is_writable && !remote.is_shared) {
    if (put.is_posted) return;
    if (!put.registration) {
      auto* base = const_cast<std::byte*>(put.source);  // NOLINT(cppcoreguidelines-pro-type-const-cast): only read.
      const device::MemoryKind kind = device::owner_of(base) != nullptr
                                          ? device::MemoryKind::device
                                          : options_.memory->kind_of(base, put.size_bytes);
      auto registration = link.transport->register_memory(base, put.size_bytes, kind);
      if (!registration) return fail_at(link, registration.error());
      put.registration = *registration;
    }
    const std::uint32_t notice = kWindowNotice | (put.with_signal ? 0 : kSilentNotice) | put.window;
    const auto posted =
        link.endpoint->post_write({&*put.registration, 0, put.size_bytes}, {remote.key, put.offset, put.size_bytes},
                                  notice, transport::Token{kPutToken | put.token});
    if (!posted) return refused(link, posted.error());
    put.is_posted = *posted == transport::Posted::started;
    if (put.is_posted) ++window.writes_sent[put.peer];
    return;
  }
  if (!put.bytes_done && put.size_bytes > link.eager_limit && remote.is_shared) {
    const auto target = link.endpoint->load_pointer({remote.key, put.offset, put.size_bytes});
    if (!target) return refused(link, target.error());
    copy_now(*target, put.source, put.size_bytes);
    put.bytes_done = true;
  }
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
    if (!post(link, header, {})) return;
  }
  finish_put(put);
}

void Engine::put_written(std::uint32_t token) {
  if (token < puts_.size() && puts_[token].in_use) finish_put(puts_[token]);
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
  for (std::size_t i = 0; i < puts_.size(); ++i) {
    if (puts_[i].in_use && !failure_) run_put(puts_[i]);
  }
}

void Engine::handle_put(Link& link, const MessageHeaderWire& header, std::span<const std::byte> payload) {
  const std::uint64_t offset = header.sequence | (std::uint64_t{header.slice} << 32);
  if (header.transfer >= windows_.size() || !windows_[header.transfer].is_open) {
    return protocol_error(link, "a put to a window that is not open");
  }
  Window& window = windows_[header.transfer];
  if (offset > window.size_bytes || payload.size() > window.size_bytes - offset) {
    return protocol_error(link, "a put that leaves the window");
  }
  if (!payload.empty()) copy_now(window.base + offset, payload.data(), payload.size());
}

void Engine::handle_window_notice(std::uint32_t notice, Rank peer) {
  const std::uint32_t window = notice & ~(kWindowNotice | kSilentNotice);
  if (window >= windows_.size() || !windows_[window].is_open) {
    return protocol_error(links_[peer.index()], "a write to a window that is not open");
  }
  ++windows_[window].writes_arrived[peer.index()];
  if ((notice & kSilentNotice) == 0) add_signal(window, peer);
}

void Engine::add_signal(std::uint32_t window, Rank peer) {
  if (window >= windows_.size() || !windows_[window].is_open) {
    return protocol_error(links_[peer.index()], "a signal of a window that is not open");
  }
  ++windows_[window].signals[peer.index()];
}

std::uint64_t Engine::signals(std::uint32_t window, Rank peer) const { return windows_[window].signals[peer.index()]; }

void Engine::take_signals(std::uint32_t window, Rank peer, std::uint64_t count) {
  windows_[window].signals[peer.index()] -= count;
}

}  // namespace weft::collectives::engine
