// The sender's half of a transfer. See Engine for the protocol.
#include <algorithm>
#include <array>
#include <bit>

#include "base/check.h"
#include "collectives/engine/engine.h"

namespace weft::collectives::engine {

MessageHeaderWire Engine::header_of(Task task, MessageKind kind, std::uint32_t offset, std::uint8_t detail) const {
  const Operation& operation = *task.operation;
  // In whole words, as links copy them: see Task.
  static_assert(std::endian::native == std::endian::little);
  const auto word = [](std::uint32_t low, std::uint32_t high) { return low | std::uint64_t{high} << 32; };
  const std::uint32_t what = MessageHeaderWire::kVersion | static_cast<std::uint32_t>(kind) << 8 |
                             static_cast<std::uint32_t>(operation.channel) << 16 | std::uint32_t{detail} << 24;
  return std::bit_cast<MessageHeaderWire>(
      std::array{word(what, operation.sequence),
                 word(operation.program->signature, operation.program->steps[task.step()].transfer),
                 word(operation.slots[task.slot()].slice, offset)});
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

void Engine::run_send(Task task) {
  StepState& state = task.operation->state(task.slot(), task.step());
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

void Engine::begin_send(Task task) {
  Operation& operation = *task.operation;
  const ProgramStep& step = operation.program->steps[task.step()];
  StepState& state = operation.state(task.slot(), task.step());
  Link& link = links_[step.peer];

  if (link.is_closed) return fail_closed(link, operation);
  const std::uint32_t told =
      operation.channel == Channel::collective ? link.collectives.peer_completed : link.sends.peer_completed;
  // Serial-number arithmetic: sequence numbers wrap.
  if (static_cast<std::int32_t>(operation.sequence - told) >= static_cast<std::int32_t>(kRunAhead)) {
    return retry_later(task);
  }

  const Piece from = operation.piece(task.slot(), step, step.source);
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

void Engine::start_payload(Task task) {
  StepState& state = task.operation->state(task.slot(), task.step());
  if (state.is_staged) {
    state.phase = Phase::posting_data;
    return post_data(task);
  }
  state.phase = Phase::posting_write;
  post_write(task);
}

void Engine::post_data(Task task) {
  Operation& operation = *task.operation;
  const ProgramStep& step = operation.program->steps[task.step()];
  StepState& state = operation.state(task.slot(), task.step());
  Link& link = links_[step.peer];
  const Piece from = operation.piece(task.slot(), step, step.source);
  const std::byte* data = state.buffer != nullptr ? state.buffer : from.data;
  do {
    const std::uint64_t size = std::min(from.size_bytes - state.progress_bytes, link.payload_max);
    const auto offset = static_cast<std::uint32_t>(state.progress_bytes);
    if (!post(link, header_of(task, MessageKind::data, offset), {data + state.progress_bytes, size})) {
      if (operation.in_flight) retry_later(task);
      return;
    }
    state.progress_bytes += size;
  } while (state.progress_bytes < from.size_bytes);
  complete(task);
}

void Engine::post_available(Task task) {
  StepState& state = task.operation->state(task.slot(), task.step());
  Link& link = links_[task.operation->program->steps[task.step()].peer];
  const PlaceKind kind = state.is_staged         ? PlaceKind::staged
                         : state.place_is_shared ? PlaceKind::mapped
                                                 : PlaceKind::read;
  const MessageHeaderWire header = header_of(task, MessageKind::available, 0, static_cast<std::uint8_t>(kind));
  if (!post(link, header, bytes_of(state.place).first(kAvailableSize))) {
    if (task.operation->in_flight) retry_later(task);
    return;
  }
  state.phase = state.is_staged ? Phase::awaiting_ready : Phase::awaiting_consumed;
}

void Engine::post_write(Task task) {
  Operation& operation = *task.operation;
  const ProgramStep& step = operation.program->steps[task.step()];
  StepState& state = operation.state(task.slot(), task.step());
  Link& link = links_[step.peer];
  const Piece from = operation.piece(task.slot(), step, step.source);
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
