// Whose turn it is: the ranks of a host and the processors that they share.
#include <utility>

#include "collectives/plan/simulation.h"

namespace weft::collectives::plan {

/// A step is ready.
void Simulation::take(Instance instance, double now_ns) {
  const Rank rank = graph_.rank_of(node_of(instance));
  Processor& processor = processors_[rank.index()];
  const bool is_send = graph_.step(node_of(instance)).kind == StepKind::send;
  (is_send ? processor.sends : processor.others).push_back({now_ns, instance});
  if (processor.is_busy) return;
  processor.is_busy = true;
  // It looks at what it has once all that becomes ready now is there.
  events_.push({now_ns, true, rank.value()});
}

/// The rank may do something: it has a step that is ready, or is done with one.
void Simulation::go_on(Rank rank, double now_ns) {
  Processor& processor = processors_[rank.index()];
  Host& host = hosts_[shape_.host_of(rank)];
  processor.is_busy = processor.has_ready();
  if (host.slots.empty()) {
    if (processor.is_busy) start_next(rank, now_ns);
    return;
  }
  if (processor.slot != nullptr) processor.slot->is_free = true;
  processor.slot = nullptr;
  if (processor.is_busy) host.waiting.push_back(rank);
  fill_slots(host, now_ns);
}

/// Gives what slots are free to the ranks whose steps have been ready the longest; of equal ones, to those that need
/// not turn.
void Simulation::fill_slots(Host& host, double now_ns) {
  const auto slot_for = [&](Rank rank) {
    Slot* found = nullptr;
    for (Slot& slot : host.slots) {
      if (slot.is_free && (found == nullptr || slot.last_rank == rank)) found = &slot;
    }
    return found;
  };
  const auto claim = [&](Rank rank) {
    return std::pair(processors_[rank.index()].ready_since_ns(), slot_for(rank)->last_rank != rank);
  };
  while (!host.waiting.empty() && slot_for(host.waiting.front()) != nullptr) {
    const auto next = std::ranges::min_element(host.waiting, {}, claim);
    const Rank rank = *next;
    host.waiting.erase(next);
    start_on(*slot_for(rank), rank, now_ns);
  }
}

void Simulation::start_on(Slot& slot, Rank rank, double now_ns) {
  const bool is_turn = slot.last_rank && *slot.last_rank != rank;
  slot = {rank, false};
  processors_[rank.index()].slot = &slot;
  start_next(rank, now_ns + (is_turn ? model_.switch_ns : 0));
}

void Simulation::start_next(Rank rank, double start_ns) {
  const Instance instance = processors_[rank.index()].take_next();
  events_.push({execute(instance, start_ns), true, rank.value()});
}

}  // namespace weft::collectives::plan
