// One-sided transfers.
#include <fmt/format.h>

#include "base/wire.h"
#include "collectives/communicator_entry.h"
#include "collectives/engine/window.h"

namespace weft::collectives {

Result<std::uint32_t> Communicator::create_window(std::byte* base, std::uint64_t size_bytes) {
  WEFT_ENTER();
  if (size_bytes > 0 && base == nullptr) {
    return Error{ErrorCode::invalid_argument, fmt::format("window: base is null but the size is {}", size_bytes)};
  }
  // Numbers come round; all ranks count alike, so a number that is still in use here is in use everywhere.
  const std::uint32_t window = num_windows_++ % engine::kWindowsMax;
  WEFT_TRY(engine_->open_window(window, base, size_bytes));
  ByteWriter own;
  for (std::uint32_t peer = 0; peer < ranks().value(); ++peer) {
    WEFT_TRY_ASSIGN(const auto remote, engine_->window_for(window, Rank{peer}));
    own.number(remote.key.first).number(remote.key.second).number(remote.size_bytes);
    own.number(std::uint8_t{remote.is_shared}).number(std::uint8_t{remote.is_writable});
  }
  if (!job_->session) {
    WEFT_TRY_ASSIGN(const auto remote, engine_->window_for(window, Rank{0}));
    engine_->set_remote_window(window, Rank{0}, remote);
    return window;
  }
  WEFT_TRY_ASSIGN(const auto blobs, job_->session->all_gather(group_, fmt::format("window {}", window), own.bytes(),
                                                              exchange_deadline()));
  for (std::uint32_t peer = 0; peer < blobs.size(); ++peer) {
    ByteReader reader(blobs[peer]);
    for (std::uint32_t target = 0; target < ranks().value(); ++target) {
      engine::Engine::RemoteWindow remote;
      remote.key.first = reader.number<std::uint64_t>();
      remote.key.second = reader.number<std::uint64_t>();
      remote.size_bytes = reader.number<std::uint64_t>();
      remote.is_shared = reader.number<std::uint8_t>() != 0;
      remote.is_writable = reader.number<std::uint8_t>() != 0;
      if (target == group_.own_index) engine_->set_remote_window(window, Rank{peer}, remote);
    }
    WEFT_TRY(reader.finish("a rank's window"));
  }
  return window;
}

Status Communicator::destroy_window(std::uint32_t window) {
  WEFT_ENTER();
  engine_->start_closing_window(window);
  const bool is_quiet = wait_until(waitable_, timeout_,
                                   [&] { return engine_->failure().has_value() || engine_->is_window_quiet(window); });
  if (engine_->failure()) return *engine_->failure();
  if (!is_quiet) {
    return Error{ErrorCode::timeout, fmt::format("window {}: some ranks have not destroyed it", window),
                 "All ranks must destroy a window, as they all created it."};
  }
  engine_->close_window(window);
  return {};
}

Result<engine::RequestId> Communicator::put(std::uint32_t window, const void* source, std::uint64_t size_bytes,
                                            Rank peer, std::uint64_t offset, bool with_signal) {
  WEFT_ENTER();
  if (peer.value() >= ranks().value()) {
    return Error{ErrorCode::invalid_argument, fmt::format("put: peer {} of {} ranks", peer.value(), ranks().value())};
  }
  if (size_bytes > 0 && source == nullptr) return Error{ErrorCode::invalid_argument, "put: the source is null"};
  return engine_->start_put(window, source, size_bytes, peer, offset, with_signal);
}

Status Communicator::wait_signal(std::uint32_t window, Rank peer, std::uint64_t count, Nanos patience) {
  WEFT_ENTER();
  if (peer.value() >= ranks().value()) {
    return Error{ErrorCode::invalid_argument, fmt::format("signal: peer {} of {}", peer.value(), ranks().value())};
  }
  const bool is_done = wait_until(waitable_, patience, [&] {
    return engine_->failure().has_value() || engine_->signals(window, peer) >= count || engine_->is_closed(peer);
  });
  if (engine_->failure()) return *engine_->failure();
  if (engine_->is_closed(peer) && engine_->signals(window, peer) < count) {
    return Error{ErrorCode::peer_failed, wiring_.links[peer.index()].name + " closed its communicator without a signal"}
        .about(peer);
  }
  if (!is_done) {
    return Error{ErrorCode::timeout, fmt::format("window {} waits for {} signals from {}; {} arrived", window, count,
                                                 wiring_.links[peer.index()].name, engine_->signals(window, peer))}
        .about(peer);
  }
  engine_->take_signals(window, peer, count);
  return {};
}

}  // namespace weft::collectives
