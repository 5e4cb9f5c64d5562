#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/spin.h"
#include "collectives/engine/engine.h"
#include "transport/transport.h"

namespace weft::collectives {

struct WaitList;

/// What one communicator contributes to its thread's waiting: an engine and the transports under it.
struct Waitable {
  engine::Engine* engine = nullptr;
  std::vector<transport::Transport*> transports;
  Spin spin;
  const std::atomic<bool>* is_interrupted = nullptr;  ///< Set by another thread that wants `on_interrupt` called.
  std::function<void()> on_interrupt{};               ///< Called by whoever waits for this communicator.
  std::shared_ptr<WaitList> list{};                   ///< The thread's list that this is in.
};

/// Makes progress on `own`, and on every other communicator of this thread that has something in flight or to send,
/// until `is_done` answers true or the deadline passes. Polls for the spin time, then sleeps until something arrives:
/// an idle rank costs no processor time.
///
/// The others matter because a peer may wait for their operations before it comes to ours.
///
/// Precondition: `own` is in this thread's list.
/// `patience` is how long the wait may last. It counts from the first time that there is nothing to do but sleep: a
/// wait that ends at once reads no clock. Thread: loop. Returns false on timeout.
bool wait_until(Waitable& own, Nanos patience, const std::function<bool()>& is_done);

/// The same for one request, without any indirection in its loop: the latency path.
bool wait_for(Waitable& own, engine::RequestId request, Nanos patience);

/// Moves a communicator to the calling thread's list, out of that of another thread that used it before; or takes it
/// out of its list. Both wait while the other thread makes progress on it or sleeps for it (50 ms at most).
void enlist(Waitable& waitable);
void delist(Waitable& waitable);
/// Runs `work` while no thread makes progress on the communicator on behalf of another one.
void exclusively(Waitable& waitable, const std::function<void()>& work);

}  // namespace weft::collectives
