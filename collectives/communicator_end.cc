// How a communicator ends: in order, or at once.
#include <fmt/format.h>

#include "collectives/communicator_entry.h"

namespace weft::collectives {

void Communicator::act_on_abort() {
  std::string reason;
  {
    const std::lock_guard lock(abort_mutex_);
    reason = abort_reason_;
  }
  engine_->fail(Error{ErrorCode::closed, fmt::format("aborted by rank {}: {}", rank().value(), reason)});
}

void Communicator::abort(const std::string& reason) {
  if (!belongs_here()) return;
  {
    const std::lock_guard lock(abort_mutex_);
    if (abort_reason_.empty()) abort_reason_ = reason.empty() ? "no reason given" : reason;
  }
  is_abort_wanted_.store(true, std::memory_order_release);
  // Nobody inside: act here and now. Otherwise the thread inside does, within its longest sleep.
  if (is_occupied_.exchange(true, std::memory_order_acquire)) return;
  is_aborting_.store(true, std::memory_order_release);
  exclusively(waitable_, [this] { act_on_abort(); });
  is_aborting_.store(false, std::memory_order_release);
  is_occupied_.store(false, std::memory_order_release);
}

Status Communicator::finalize() {
  const Occupied occupied(*this);
  const bool is_child = !belongs_here();
  if (!is_child && !occupied.is_owner()) {
    return Error{ErrorCode::invalid_argument, "the communicator is destroyed while another thread uses it",
                 "Let the other thread's call end first; weft_abort ends it early."};
  }
  if (is_finalized_) return {};
  is_finalized_ = true;
  if (is_child) return {};
  enlist(waitable_);
  Status status;
  if (is_abort_wanted_.load(std::memory_order_relaxed)) act_on_abort();
  if (!engine_->failure() && !wait_until(waitable_, timeout_, [this] {
        return engine_->num_in_flight() == 0 || engine_->failure() || is_abort_wanted_.load();
      })) {
    status = Error{ErrorCode::timeout, "operations are still in flight while the communicator is destroyed"};
  }
  delist(waitable_);
  engine_->close();
  if (Status closed = trace_.close(); !closed && status) status = closed.error();
  return status;
}

}  // namespace weft::collectives
