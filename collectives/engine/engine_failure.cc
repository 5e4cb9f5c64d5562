// How a communicator ends: the first cause, everybody told, every operation finished; and what a stuck one waits for.
#include <algorithm>

#include <fmt/format.h>

#include "collectives/engine/engine.h"

namespace weft::collectives::engine {

void Engine::fail_operation(Operation& operation, const Error& cause) {
  operation.error = cause.within(operation.program->label);
  for (StepState& state : operation.states) {
    if (state.buffer == nullptr || state.phase == Phase::complete) continue;
    state.buffer = nullptr;  // The transport or a device may still use it: it is not given out again.
  }
  operation.scratch().base = nullptr;  // For the same reason.
  finish(operation);
}

void Engine::fail(const Error& cause) {
  if (failure_) return;
  failure_ = cause;
  mismatch_.reset();
  for (Link& link : links_) {
    link.fault_is_due = link.endpoint != nullptr;
    num_faults_due_ += link.fault_is_due ? 1 : 0;
  }
  for (Window& window : windows_) window.is_closing = false;  // The fault says it to the peers, too.
  num_windows_closing_ = 0;
  tell_fault();
  // Before any of this communicator's memory goes back to its owner, and after the fault, which says more.
  const std::string why = cause.message();
  for (Link& link : links_) {
    if (link.endpoint != nullptr) link.endpoint->revoke(why);
  }
  for (Put& put : puts_) {
    if (put.in_use) end_put(put);
  }
  for (Link& link : links_) link.puts.clear();
  for (const auto& operation : operations_) {
    if (operation->in_flight) fail_operation(*operation, cause);
  }
  tasks_.clear();
  first_task_ = 0;
  retries_.clear();
  computing_.clear();
}

void Engine::tell_fault() {
  MessageHeaderWire header;
  header.kind = MessageKind::fault;
  header.transfer = static_cast<std::uint32_t>(failure_->code());
  header.sequence = failure_->peer() ? failure_->peer()->value() + 1 : 0;
  const std::string text = failure_->message().substr(0, kFaultTextMax);
  for (Link& link : links_) {
    if (!link.fault_is_due) continue;
    // A peer whose link is broken or closed cannot be told, and has that to report itself.
    if (!link.is_closed && !link.endpoint->failure()) {
      const auto told = link.endpoint->post_message(
          bytes_of(header), std::as_bytes(std::span(text)).first(std::min<std::size_t>(text.size(), link.payload_max)));
      if (told && *told == transport::Posted::again) continue;  // A full ring: with the next progress.
    }
    link.fault_is_due = false;
    --num_faults_due_;
  }
}

void Engine::refused(Link& link, const Error& error) {
  if (failure_ || link.refusal) return;
  link.refusal = error;
  ++num_refusals_;
}

void Engine::judge_refusals(std::uint32_t transport_index) {
  for (Link& link : links_) {
    if (!link.refusal || link.transport_index != transport_index) continue;
    const Error cause = *link.refusal;
    link.refusal.reset();
    --num_refusals_;
    fail_at(link, cause);
  }
}

void Engine::fail_at(const Link& link, const Error& cause) {
  if (cause.code() == ErrorCode::closed) {
    return fail(Error{ErrorCode::peer_failed, link.name + " closed its communicator while it is needed",
                      "All ranks must make the same calls before they destroy the communicator."}
                    .about(rank_of(link)));
  }
  fail(cause.about(rank_of(link)).within(link.name));
}

void Engine::fail_closed(const Link& link, const Operation& operation) {
  fail(Error{ErrorCode::peer_failed,
             fmt::format("{} closed its communicator while {} #{} needs it", link.name, operation.program->label,
                         operation.sequence),
             "All ranks must make the same calls before they destroy the communicator."}
           .about(rank_of(link)));
}

bool Engine::waits_for(const Operation& operation, Rank peer) const {
  const Program& program = *operation.program;
  for (std::uint32_t index = 0; index < program.steps.size(); ++index) {
    const ProgramStep& step = program.steps[index];
    if (!plan::is_transfer(step.kind) || step.peer != peer.value()) continue;
    for (std::uint32_t slot = 0; slot < operation.slots.size(); ++slot) {
      if (operation.slots[slot].steps_left == 0) continue;
      switch (operation.states[slot * program.steps.size() + index].phase) {
        case Phase::blocked:           // What it needs may have been parked: it is judged when it starts.
        case Phase::computing:         // So is a send that waits for its bounce.
        case Phase::awaiting_written:  // What was posted before the close completes.
        case Phase::complete: continue;
        default: return true;
      }
    }
  }
  return false;
}

void Engine::link_closed(Rank peer) {
  Link& link = links_[peer.index()];
  link.is_closed = true;
  if (failure_) return;
  for (const auto& operation : operations_) {
    if (operation->in_flight && waits_for(*operation, peer)) return fail_closed(link, *operation);
  }
}

void Engine::close() {
  if (num_faults_due_ > 0) tell_fault();
  for (Link& link : links_) {
    if (link.endpoint != nullptr) link.endpoint->close();
  }
}

std::string Engine::explain(RequestId request) const {
  const Operation& operation = *operations_[request.index];
  if (operation.generation != request.generation || operation.program == nullptr) return "a request that is complete";
  const Program& program = *operation.program;
  std::vector<std::uint32_t> receiving;
  std::vector<std::uint32_t> sending;
  for (std::uint32_t slot = 0; slot < operation.slots.size(); ++slot) {
    if (operation.slots[slot].steps_left == 0) continue;
    for (std::uint32_t index = 0; index < program.steps.size(); ++index) {
      const StepState& state = operation.states[slot * program.steps.size() + index];
      const ProgramStep& step = program.steps[index];
      if (!plan::is_transfer(step.kind) || state.phase == Phase::complete || state.phase == Phase::blocked) continue;
      auto& list = step.kind == plan::StepKind::send ? sending : receiving;
      if (std::find(list.begin(), list.end(), step.peer) == list.end()) list.push_back(step.peer);
    }
  }
  const auto names = [this](const std::vector<std::uint32_t>& peers) {
    std::string text;
    for (std::size_t i = 0; i < peers.size() && i < 8; ++i) {
      text += (i == 0 ? "" : ", ") + links_[peers[i]].name;
    }
    if (peers.size() > 8) text += fmt::format(" and {} more", peers.size() - 8);
    return text;
  };
  std::string text = fmt::format("{} #{}", program.label, operation.sequence);
  if (program.steps.size() == 1 && links_[program.steps.front().peer].endpoint == nullptr) {
    return text + " waits for the matching call of this rank itself";
  }
  if (!receiving.empty()) text += " waits for data from " + names(receiving);
  if (!sending.empty()) text += (receiving.empty() ? " waits for " : ", and for ") + names(sending) + " to take data";
  return text;
}

}  // namespace weft::collectives::engine
