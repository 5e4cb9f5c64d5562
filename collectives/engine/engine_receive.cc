// The receiver's half of a transfer. See Engine for the protocol.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "collectives/engine/engine.h"

namespace weft::collectives::engine {

void Engine::run_receive(Task task) {
  StepState& state = task.operation->state(task.slot(), task.step());
  switch (state.phase) {
    case Phase::blocked: return begin_receive(task);
    case Phase::posting_place: return post_ready(task);
    case Phase::posting_read: return read_available(task);
    case Phase::posting_consumed: return post_consumed(task);
    default: return;
  }
}

std::uint32_t Engine::add_landing(Task task) {
  if (free_landings_.empty()) {
    landings_.push_back(task);
    free_landings_.reserve(landings_.size());
    return static_cast<std::uint32_t>(landings_.size() - 1);
  }
  const std::uint32_t landing = free_landings_.back();
  free_landings_.pop_back();
  landings_[landing] = task;
  return landing;
}

void Engine::begin_receive(Task task) {
  Operation& operation = *task.operation;
  const ProgramStep& step = operation.program->steps[task.step()];
  StepState& state = operation.state(task.slot(), task.step());
  Link& link = links_[step.peer];
  const Piece to = operation.piece(task.slot(), step, step.destination);

  if (to.size_bytes > link.eager_limit && link.capabilities.large_path == transport::LargePath::write) {
    if (link.is_closed) return fail_closed(link, operation);
    // As in begin_send: the peer has to park what it is told before its own call.
    const std::uint32_t done =
        operation.channel == Channel::collective ? link.collectives.peer_completed : link.receives_completed;
    if (static_cast<std::int32_t>(operation.sequence - done) >= static_cast<std::int32_t>(kRunAhead)) {
      return retry_later(task);
    }
    const bool lands_in_place =
        step.kind == plan::StepKind::receive && (to.device == nullptr || link.capabilities.moves_device_memory);
    if (!lands_in_place) {
      auto buffer = arena_.acquire(to.size_bytes);
      if (!buffer) return fail(buffer.error());
      state.buffer = *buffer;
    }
    auto place = place_of(operation, link, lands_in_place ? to.data : state.buffer);
    if (!place) return fail_at(link, place.error());
    state.place = {place->region->key, place->offset, add_landing(task), 0};
    state.phase = Phase::posting_place;
    return post_ready(task);
  }

  state.phase = Phase::awaiting_data;
  if (!link.parked.empty()) unpark(task);
  // What was parked may have completed this step, its slice, or the operation, or may have failed it.
  if (!operation.in_flight || state.phase != Phase::awaiting_data) return;
  if (state.has_place) return read_available(task);
  if (link.is_closed) fail_closed(link, operation);
}

void Engine::post_ready(Task task) {
  StepState& state = task.operation->state(task.slot(), task.step());
  Link& link = links_[task.operation->program->steps[task.step()].peer];
  if (!post(link, header_of(task, MessageKind::ready), bytes_of(state.place))) {
    if (task.operation->in_flight) retry_later(task);
    return;
  }
  state.phase = state.is_staged ? Phase::awaiting_data : Phase::awaiting_notice;
}

void Engine::receive_data(Task task, std::uint32_t offset, std::span<const std::byte> payload) {
  Operation& operation = *task.operation;
  const ProgramStep& step = operation.program->steps[task.step()];
  StepState& state = operation.state(task.slot(), task.step());
  const Piece to = operation.piece(task.slot(), step, step.destination);
  if (offset != state.progress_bytes || payload.size() > to.size_bytes - offset ||
      payload.size() % operation.program->element_size != 0) {
    return protocol_error(links_[step.peer], "data that does not fit its transfer");
  }
  const bool on_device = to.device != nullptr || (step.kind == plan::StepKind::receive_reduce &&
                                                  operation.piece(task.slot(), step, step.source).device != nullptr);
  if (on_device && to.size_bytes > 0) {
    // The message's bytes are gone after the next poll, and a device takes its time: keep them until all are here.
    if (state.buffer == nullptr) {
      auto buffer = arena_.acquire(to.size_bytes);
      if (!buffer) return fail(buffer.error());
      state.buffer = *buffer;
    }
    std::memcpy(state.buffer + offset, payload.data(), payload.size());
  } else {
    WEFT_CHECK(start_combine(task, offset, payload.data(), payload.size()), "the host's work is done at once");
  }
  state.progress_bytes += payload.size();
  if (state.progress_bytes < to.size_bytes) return;
  if (on_device && to.size_bytes > 0 && !start_combine(task, 0, state.buffer, to.size_bytes)) return;
  complete(task);
}

void Engine::read_available(Task task) {
  Operation& operation = *task.operation;
  const ProgramStep& step = operation.program->steps[task.step()];
  StepState& state = operation.state(task.slot(), task.step());
  Link& link = links_[step.peer];
  const Piece to = operation.piece(task.slot(), step, step.destination);
  if (state.is_staged) {
    state.phase = Phase::posting_place;
    state.place = {};
    state.has_place = false;  // It is used up: what comes next is data.
    return post_ready(task);
  }
  state.phase = Phase::posting_read;
  if (!state.place_is_shared) return post_read(task);
  const Result<std::byte*> source = link.endpoint->load_pointer({state.place.key, state.place.offset, to.size_bytes});
  if (!source) return refused(link, source.error());
  if (start_combine(task, 0, *source, to.size_bytes)) after_combine(task);
}

void Engine::post_read(Task task) {
  Operation& operation = *task.operation;
  const ProgramStep& step = operation.program->steps[task.step()];
  StepState& state = operation.state(task.slot(), task.step());
  Link& link = links_[step.peer];
  const Piece to = operation.piece(task.slot(), step, step.destination);
  const bool in_place = step.kind == plan::StepKind::receive && to.device == nullptr;
  if (!in_place && state.buffer == nullptr) {
    auto buffer = arena_.acquire(to.size_bytes);
    if (!buffer) return fail(buffer.error());
    state.buffer = *buffer;
  }
  auto place = place_of(operation, link, in_place ? to.data : state.buffer);
  if (!place) return fail_at(link, place.error());
  if (state.landing == 0) state.landing = add_landing(task) + 1;
  const Result<transport::Posted> posted = link.endpoint->post_read(
      {place->region, place->offset, to.size_bytes}, {state.place.key, state.place.offset, to.size_bytes},
      transport::Token{state.landing - 1});
  if (!posted) return refused(link, posted.error());
  if (*posted == transport::Posted::again) return retry_later(task);
  state.phase = Phase::awaiting_read;
}

void Engine::combine_landed(Task task) {
  const StepState& state = task.operation->state(task.slot(), task.step());
  if (state.buffer == nullptr) return after_combine(task);
  const ProgramStep& step = task.operation->program->steps[task.step()];
  const Piece to = task.operation->piece(task.slot(), step, step.destination);
  if (start_combine(task, 0, state.buffer, to.size_bytes)) after_combine(task);
}

void Engine::after_combine(Task task) {
  StepState& state = task.operation->state(task.slot(), task.step());
  const Link& link = links_[task.operation->program->steps[task.step()].peer];
  const bool was_read = state.has_place && link.capabilities.large_path == transport::LargePath::read;
  if (!was_read) return complete(task);
  if (link.endpoint->is_revoked()) [[unlikely]] {
    // The peer failed, and what was read may be of its memory's next use: the step never completes.
    state.phase = Phase::awaiting_read;
    if (link.is_closed) fail_closed(link, *task.operation);
    return;
  }
  state.phase = Phase::posting_consumed;
  post_consumed(task);
}

void Engine::post_consumed(Task task) {
  Link& link = links_[task.operation->program->steps[task.step()].peer];
  if (!post(link, header_of(task, MessageKind::consumed), {})) {
    if (task.operation->in_flight) retry_later(task);
    return;
  }
  complete(task);
}

}  // namespace weft::collectives::engine
