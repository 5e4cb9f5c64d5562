#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/spin.h"
#include "collectives/engine/engine.h"
#include "transport/transport.h"

namespace weft::collectives {

/// What one communicator contributes to its thread's waiting: an engine and the transports under it.
struct Waitable {
  engine::Engine* engine = nullptr;
  std::vector<transport::Transport*> transports;
  Spin spin;
};

/// Makes progress on `own`, and on every other communicator of this thread that has something in flight, until `is_done`
/// answers true or the deadline passes. Polls for the spin time, then sleeps until something arrives: an idle rank costs
/// no processor time.
///
/// The others matter because a peer may wait for their operations before it comes to ours.
/// Thread: loop. Returns false on timeout.
bool wait_until(Waitable& own, Deadline deadline, const std::function<bool()>& is_done);

/// The same for one request, without any indirection in its loop: the latency path.
bool wait_for(Waitable& own, engine::RequestId request, Deadline deadline, const std::function<bool()>& is_interrupted);

/// Adds a communicator to the calling thread's list, or removes it from it. A communicator is in at most one list.
void enlist(Waitable& waitable);
void delist(Waitable& waitable);

}  // namespace weft::collectives
