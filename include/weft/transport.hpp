// Weft as a transport: register memory, write into a peer's, notice what arrived. Header-only over weft.h.
#ifndef WEFT_TRANSPORT_HPP
#define WEFT_TRANSPORT_HPP

#include <weft/weft.hpp>

namespace weft {

/// Memory of every rank that its peers may write, and counters of what they announced.
///
/// Registration is collective: afterwards each rank can name bytes of every other one by rank and offset alone. A write
/// needs no action of the target where the link can write by itself (shared memory of weft_memory_allocate, network
/// devices, TCP from the eager limit up); elsewhere the target's next call on the communicator takes it in.
class Window {
 public:
  /// Opens `memory` to the peers; sizes may differ between ranks. It must outlive the window, and
  /// the window goes before the communicator.
  static Outcome<Window> open(Communicator& communicator, std::span<std::byte> memory) {
    weft_window_t* window = nullptr;
    const weft_status_t status = weft_window_create(communicator.handle(), memory.data(), memory.size(), &window);
    if (status != WEFT_SUCCESS) return Failure::last(status);
    return Window{window};
  }

  /// Starts a write to `offset` of the peer's memory, without a notice. Complete: `source` may change.
  Outcome<Request> write(std::span<const std::byte> source, std::uint32_t peer, std::uint64_t offset) {
    return put(source, peer, offset, 0);
  }
  /// The same; once the bytes are visible there, the peer's wait_notices(own rank) counts one more.
  Outcome<Request> write_with_notice(std::span<const std::byte> source, std::uint32_t peer, std::uint64_t offset) {
    return put(source, peer, offset, 1);
  }
  /// Waits until `count` more writes with notice from `peer` are visible here. timeout 0: WEFT_TIMEOUT.
  Outcome<void> wait_notices(std::uint32_t peer, std::uint64_t count = 1,
                             std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero()) {
    return detail::outcome_of(
        weft_wait_signal(window_.get(), peer, count, static_cast<std::uint64_t>(timeout.count())));
  }
  /// Collective: afterwards no peer writes any more. The destructor does the same and drops the outcome.
  Outcome<void> close() { return detail::outcome_of(weft_window_destroy(window_.release())); }

 private:
  struct Destroy {
    void operator()(weft_window_t* window) const noexcept { weft_window_destroy(window); }
  };
  explicit Window(weft_window_t* window) : window_(window) {}
  Outcome<Request> put(std::span<const std::byte> source, std::uint32_t peer, std::uint64_t offset, int signal) {
    weft_request_t request;
    const weft_status_t status = weft_put(window_.get(), source.data(), source.size(), peer, offset, signal, &request);
    if (status != WEFT_SUCCESS) return Failure::last(status);
    return Request{request};
  }
  std::unique_ptr<weft_window_t, Destroy> window_;
};

}  // namespace weft

#endif  // WEFT_TRANSPORT_HPP
