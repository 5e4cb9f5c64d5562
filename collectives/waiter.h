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
  std::shared_ptr<WaitList> list{};  ///< The thread's list that this is in.
};

/// How long a wait may last. A plain duration becomes a deadline only when the wait turns out not to be short, so that
/// a wait that ends at once reads no clock.
class Patience {
 public:
  static Patience until(Deadline deadline) noexcept { return Patience{deadline, Nanos::zero()}; }
  static Patience of(Nanos duration) noexcept { return Patience{std::nullopt, duration}; }
  [[nodiscard]] Deadline deadline() noexcept {
    if (!deadline_) deadline_ = Deadline::after(duration_);
    return *deadline_;
  }

 private:
  Patience(std::optional<Deadline> deadline, Nanos duration) : deadline_(deadline), duration_(duration) {}
  std::optional<Deadline> deadline_;
  Nanos duration_;
};

/// Makes progress on `own`, and on every other communicator of this thread that has something in flight or to send,
/// until `is_done` answers true or the deadline passes. Polls for the spin time, then sleeps until something arrives:
/// an idle rank costs no processor time.
///
/// The others matter because a peer may wait for their operations before it comes to ours.
/// Thread: loop. Returns false on timeout.
bool wait_until(Waitable& own, Patience patience, const std::function<bool()>& is_done);

/// The same for one request, without any indirection in its loop: the latency path. `interrupt` is looked at after each
/// progress; once it is set, `on_interrupt` is called.
bool wait_for(Waitable& own, engine::RequestId request, Patience patience, const std::atomic<bool>& interrupt,
              const std::function<void()>& on_interrupt);

/// Moves a communicator to the calling thread's list, out of that of another thread that used it before; or takes it
/// out of its list. Both wait while the other thread makes progress on it or sleeps for it (50 ms at most).
void enlist(Waitable& waitable);
void delist(Waitable& waitable);
/// Runs `work` while no thread makes progress on the communicator on behalf of another one.
void exclusively(Waitable& waitable, const std::function<void()>& work);

}  // namespace weft::collectives
