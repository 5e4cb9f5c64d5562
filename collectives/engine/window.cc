// The target's half of one-sided puts: windows, what arrives in them, and their end. See put.cc.
#include "collectives/engine/window.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "collectives/engine/engine.h"
#include "collectives/engine/sequence.h"
#include "device/devices.h"

namespace weft::collectives::engine {
Status Engine::open_window(std::uint32_t window, std::byte* base, std::uint64_t size_bytes) {
  if (failure_) return *failure_;
  if (windows_.size() <= window) windows_.resize(window + 1);
  Window& opened = windows_[window];
  if (opened.is_open) return Error{ErrorCode::limit_exceeded, fmt::format("{} windows are open", kWindowsMax)};
  opened = Window{};
  opened.is_open = true;
  opened.base = base;
  opened.size_bytes = size_bytes;
  opened.remote.resize(links_.size());
  opened.signals.resize(links_.size());
  opened.writes_sent.resize(links_.size());
  opened.writes_arrived.resize(links_.size());
  opened.writes_ahead.resize(links_.size());
  opened.signals_waiting.resize(links_.size());
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
      if (!links_[rank].puts.empty()) {
        are_all_told = false;
        continue;
      }
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
  const std::uint32_t number = notice % kWindowsMax;
  if (number >= windows_.size() || !windows_[number].is_open) {
    return protocol_error(links_[peer.index()], "a write to a window that is not open");
  }
  Window& window = windows_[number];
  std::uint32_t& next = window.writes_arrived[peer.index()];
  std::vector<std::uint32_t>& ahead = window.writes_ahead[peer.index()];
  const std::uint32_t distance = ((notice >> kWindowBits) - next) % kWriteNumbers;
  if (distance >= kWritesApart || std::find(ahead.begin(), ahead.end(), next + distance) != ahead.end()) {
    return protocol_error(links_[peer.index()], "a write twice");
  }
  ahead.push_back(next + distance);
  for (auto found = ahead.end(); (found = std::find(ahead.begin(), ahead.end(), next)) != ahead.end(); ++next) {
    ahead.erase(found);
  }
  count_signals(window, peer);
}

void Engine::add_signal(const MessageHeaderWire& header, Rank peer) {
  if (header.transfer >= windows_.size() || !windows_[header.transfer].is_open) {
    return protocol_error(links_[peer.index()], "a signal of a window that is not open");
  }
  Window& window = windows_[header.transfer];
  window.signals_waiting[peer.index()].push_back(header.sequence);
  count_signals(window, peer);
}

void Engine::count_signals(Window& window, Rank peer) {
  std::vector<std::uint32_t>& waiting = window.signals_waiting[peer.index()];
  const std::uint32_t arrived = window.writes_arrived[peer.index()];
  const auto first_later =
      std::find_if(waiting.begin(), waiting.end(), [&](std::uint32_t writes) { return is_before(arrived, writes); });
  window.signals[peer.index()] += static_cast<std::uint64_t>(first_later - waiting.begin());
  waiting.erase(waiting.begin(), first_later);
}

std::uint64_t Engine::signals(std::uint32_t window, Rank peer) const { return windows_[window].signals[peer.index()]; }

void Engine::take_signals(std::uint32_t window, Rank peer, std::uint64_t count) {
  windows_[window].signals[peer.index()] -= count;
}

}  // namespace weft::collectives::engine
