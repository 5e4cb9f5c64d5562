// The sender's half of a transfer. See Engine for the protocol.
#include <algorithm>

#include "base/check.h"
#include "collectives/engine/engine.h"

namespace weft::collectives::engine {

MessageHeaderWire Engine::header_of(const Task& task, MessageKind kind) const {
  const Operation& operation = *task.operation;
  MessageHeaderWire header;
  header.kind = kind;
  header.channel = operation.channel;
  header.sequence = operation.sequence;
  header.signature = operation.program->signature;
  header.transfer = operation.program->steps[task.step].transfer;
  header.slice = operation.slots[task.slot].slice;
  return header;
}

bool Engine::travels_in_messages(const Link& link) noexcept {
  return link.capabilities.large_path == transport::LargePath::read &&
         link.capabilities.plain_path == transport::PlainPath::staging;
}

bool Engine::post(Link& link, const MessageHeaderWire& header, std::span<const std::byte> payload) {
  const Result<transport::Posted> posted = link.endpoint->post_message(bytes_of(header), payload);
  if (!posted) {
    refused(link, posted.error());
    return false;
  }
  return *posted == transport::Posted::started;
}

void Engine::run_send(const Task& task) {
  StepState& state = task.operation->state(task.slot, task.step);
  switch (state.phase) {
    case Phase::blocked: return begin_send(task);
    case Phase::computing:  // The bounce buffer is filled.
      state.phase = Phase::blocked;
      return begin_send(task);
    case Phase::posting_data: return post_data(task);
    case Phase::posting_place: return post_available(task);
    case Phase::posting_write: return post_write(task);
    default: return;
  }
}

void Engine::begin_send(const Task& task) {
  Operation& operation = *task.operation;
  const ProgramStep& step = operation.program->steps[task.step];
  StepState& state = operation.state(task.slot, task.step);
  Link& link = links_[step.peer];

  if (link.is_closed) return fail_closed(link, operation);
  const std::uint32_t told =
      operation.channel == Channel::collective ? link.collectives.peer_completed : link.sends.peer_completed;
  // Serial-number arithmetic: sequence numbers wrap.
  if (static_cast<std::int32_t>(operation.sequence - told) >= static_cast<std::int32_t>(kRunAhead)) {
    return retry_later(task);
  }

  const Piece from = operation.piece(task.slot, step, step.source);
  const bool fits_message = from.size_bytes <= link.eager_limit;
  const bool needs_bounce = from.device != nullptr && from.size_bytes > 0 &&
                            (fits_message || !link.capabilities.moves_device_memory || travels_in_messages(link));
  if (needs_bounce && state.buffer == nullptr) {
    auto buffer = arena_.acquire(from.size_bytes);
    if (!buffer) return fail(buffer.error());
    state.buffer = *buffer;
    if (!start_on(from.device, task, from.device->copy(state.buffer, from.data, from.size_bytes))) return;
  }

  if (fits_message) {
    state.phase = Phase::posting_data;
    return post_data(task);
  }
  if (link.capabilities.large_path == transport::LargePath::write) {
    state.phase = Phase::awaiting_ready;
    if (!state.has_place && !link.parked.empty()) unpark(task);
    if (state.has_place && state.phase == Phase::awaiting_ready) start_payload(task);
    return;
  }
  const std::byte* data = state.buffer != nullptr ? state.buffer : from.data;
  auto place = place_of(operation, link, data);
  if (!place) return fail_at(link, place.error());
  const bool is_mapped = place->region->kind == device::MemoryKind::shared && link.capabilities.maps_shared_memory;
  if (is_mapped || link.capabilities.plain_path == transport::PlainPath::read) {
    state.place = {place->region->key, place->offset, 0, 0};
    state.place_is_shared = is_mapped;
  } else {
    // A train to a receiver that is not there yet would be parked, all of it.
    state.is_staged = true;
  }
  state.phase = Phase::posting_place;
  post_available(task);
}

void Engine::start_payload(const Task& task) {
  StepState& state = task.operation->state(task.slot, task.step);
  if (state.is_staged) {
    state.phase = Phase::posting_data;
    return post_data(task);
  }
  state.phase = Phase::posting_write;
  post_write(task);
}

void Engine::post_data(const Task& task) {
  Operation& operation = *task.operation;
  const ProgramStep& step = operation.program->steps[task.step];
  StepState& state = operation.state(task.slot, task.step);
  Link& link = links_[step.peer];
  const Piece from = operation.piece(task.slot, step, step.source);
  const std::byte* data = state.buffer != nullptr ? state.buffer : from.data;
  MessageHeaderWire header = header_of(task, MessageKind::data);
  do {
    const std::uint64_t size = std::min(from.size_bytes - state.progress_bytes, link.payload_max);
    header.offset = static_cast<std::uint32_t>(state.progress_bytes);
    if (!post(link, header, {data + state.progress_bytes, size})) {
      if (operation.in_flight) retry_later(task);
      return;
    }
    state.progress_bytes += size;
  } while (state.progress_bytes < from.size_bytes);
  complete(task);
}

void Engine::post_available(const Task& task) {
  StepState& state = task.operation->state(task.slot, task.step);
  Link& link = links_[task.operation->program->steps[task.step].peer];
  MessageHeaderWire header = header_of(task, MessageKind::available);
  const PlaceKind kind = state.is_staged         ? PlaceKind::staged
                         : state.place_is_shared ? PlaceKind::mapped
                                                 : PlaceKind::read;
  header.reserved = static_cast<std::uint8_t>(kind);
  if (!post(link, header, bytes_of(state.place).first(kAvailableSize))) {
    if (task.operation->in_flight) retry_later(task);
    return;
  }
  state.phase = state.is_staged ? Phase::awaiting_ready : Phase::awaiting_consumed;
}

void Engine::post_write(const Task& task) {
  Operation& operation = *task.operation;
  const ProgramStep& step = operation.program->steps[task.step];
  StepState& state = operation.state(task.slot, task.step);
  Link& link = links_[step.peer];
  const Piece from = operation.piece(task.slot, step, step.source);
  const std::byte* data = state.buffer != nullptr ? state.buffer : from.data;
  auto place = place_of(operation, link, data);
  if (!place) return fail_at(link, place.error());
  // The landing number of the write's own completion, beside the one that it announces at the peer.
  if (state.landing == 0) state.landing = add_landing(task) + 1;
  const Result<transport::Posted> posted = link.endpoint->post_write(
      {place->region, place->offset, from.size_bytes}, {state.place.key, state.place.offset, from.size_bytes},
      state.place.landing, transport::Token{state.landing - 1});
  if (!posted) return refused(link, posted.error());
  if (*posted == transport::Posted::again) return retry_later(task);
  state.phase = Phase::awaiting_written;
}

}  // namespace weft::collectives::engine
