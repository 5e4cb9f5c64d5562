// Arrivals: which operation, slice and step a message, notice or completion belongs to, and what it means there.
#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/text.h"
#include "collectives/engine/engine.h"
#include "collectives/engine/sequence.h"
#include "collectives/engine/window.h"

namespace weft::collectives::engine {
void Engine::handle(const transport::Completion& completion, std::uint32_t transport_index) {
  using Kind = transport::Completion::Kind;
  Link& link = links_[completion.peer.index()];
  switch (completion.kind) {
    case Kind::message: return handle_message(completion.peer, completion.message);
    case Kind::closed: return link_closed(completion.peer);
    case Kind::failed: {
      const auto reason = options_.transports[transport_index]->endpoint(completion.peer)->failure();
      const Error cause = reason ? *reason : Error{ErrorCode::peer_failed, "the link broke"};
      return fail_at(link, cause);
    }
    case Kind::written:
    case Kind::read: {
      const auto token = static_cast<std::uint64_t>(completion.token);
      if ((token & kPutToken) != 0) return put_written(static_cast<std::uint32_t>(token & ~kPutToken));
      const Task task = std::exchange(landings_[token], Task{});
      free_landings_.push_back(static_cast<std::uint32_t>(token));
      if (task.operation == nullptr || !task.operation->in_flight) return;
      if (completion.kind == Kind::written) return complete(task);
      return combine_landed(task);
    }
    case Kind::notice: {
      if ((completion.notice & kWindowNotice) != 0) {
        return handle_window_notice(completion.notice, completion.peer);
      }
      if (completion.notice >= landings_.size()) return protocol_error(link, "a notice of no landing");
      const Task task = landings_[completion.notice];
      if (task.operation == nullptr || !task.operation->in_flight) return;
      if (task.operation->state(task.slot(), task.step()).phase != Phase::awaiting_notice ||
          task.operation->program->steps[task.step()].peer != completion.peer.value()) {
        return protocol_error(link, "a notice of a landing that is not its own");
      }
      landings_[completion.notice] = Task{};  // The same notice again means nothing.
      free_landings_.push_back(completion.notice);
      return combine_landed(task);
    }
  }
}

void Engine::protocol_error(const Link& link, std::string_view what) {
  fail(Error{ErrorCode::malformed, fmt::format("{} sent {}", link.name, what),
             "Do all ranks run the same version of Weft?"});
}

void Engine::handle_message(Rank peer, std::span<const std::byte> message) {
  if (failure_) return;
  Link& link = links_[peer.index()];
  MessageHeaderWire header;
  if (message.size() < sizeof header) return protocol_error(link, "a message without a header");
  std::memcpy(&header, message.data(), sizeof header);
  if (header.version != MessageHeaderWire::kVersion) return protocol_error(link, "a message of another version");
  const auto payload = message.subspan(sizeof header);
  switch (header.kind) {
    case MessageKind::data:
    case MessageKind::ready:
    case MessageKind::available:
    case MessageKind::consumed: return deliver(link, peer, header, payload);
    case MessageKind::progress:
      (header.channel == Channel::collective ? link.collectives : link.sends).peer_completed = header.sequence;
      return;
    case MessageKind::put: return handle_put(link, header, payload);
    case MessageKind::window_closing: return window_closing(link, peer, header);
    case MessageKind::signal: return add_signal(header, peer);
    case MessageKind::mismatch: return handle_mismatch(link, header, payload);
    case MessageKind::fault: {
      const auto code = static_cast<ErrorCode>(
          std::min<std::uint32_t>(header.transfer, static_cast<std::uint32_t>(ErrorCode::system)));
      const std::string text =
          printable({reinterpret_cast<const char*>(payload.data()), std::min(payload.size(), kFaultTextMax)});
      const Rank about{header.sequence - 1};
      return fail(Error{code, fmt::format("{} reports: {}", link.name, text)}.about(
          header.sequence != 0 && about.index() < links_.size() && about != options_.own_rank ? about : peer));
    }
  }
  protocol_error(link, "a message of an unknown kind");
}

Operation* Engine::find_operation(Link& link, const MessageHeaderWire& header) {
  if (header.channel == Channel::collective) {
    Operation* operation = collectives_[header.sequence % kInFlightMax];
    return operation != nullptr && operation->sequence == header.sequence ? operation : nullptr;
  }
  const auto& candidates = is_for_sender(header.kind) ? link.send_operations : link.receive_operations;
  for (Operation* operation : candidates) {
    if (operation->sequence == header.sequence) return operation;
  }
  return nullptr;
}

void Engine::deliver(Link& link, Rank peer, const MessageHeaderWire& header, std::span<const std::byte> payload) {
  Operation* operation = find_operation(link, header);
  if (operation == nullptr) {
    const std::uint32_t next = header.channel == Channel::collective ? next_sequence_
                               : is_for_sender(header.kind)          ? link.sends_started
                                                                     : link.receives_started;
    if (is_before(header.sequence, next)) return report_mismatch(link, header);
    if (header.kind == MessageKind::consumed) return protocol_error(link, "thanks for nothing");
    // See kRunAhead: nobody sends for an operation further ahead of what this rank has completed. (Of its sends, this
    // rank knows only that the peer cannot have completed more receives than were started here.)
    const std::uint32_t behind = header.channel == Channel::collective ? completed_
                                 : is_for_sender(header.kind)          ? link.sends_started
                                                                       : link.receives_completed;
    if (header.sequence - behind >= kRunAhead) return protocol_error(link, "a message of a call too far ahead");
    return park(link, header, payload);
  }
  const Program& program = *operation->program;
  if (header.signature != program.signature) return report_mismatch(link, header);
  if (header.transfer >= program.num_transfers || header.slice >= program.slicing.num_slices) {
    return protocol_error(link, "a message of an unknown transfer");
  }
  const std::uint32_t step = program.step_of_transfer[header.transfer];
  if (step == Program::kNoStep || program.steps[step].peer != peer.value() ||
      is_for_sender(header.kind) != (program.steps[step].kind == plan::StepKind::send)) {
    return protocol_error(link, "a message of a transfer that is not its own");
  }
  for (std::uint32_t slot = 0; slot < operation->slots.size(); ++slot) {
    const SliceSlot& active = operation->slots[slot];
    if (active.steps_left > 0 && active.slice == header.slice) return apply({operation, slot, step}, header, payload);
  }
  if (header.slice >= operation->next_slice) return park(link, header, payload);
  protocol_error(link, "a message of a slice that is complete");
}

void Engine::apply(Task task, const MessageHeaderWire& header, std::span<const std::byte> payload) {
  StepState& state = task.operation->state(task.slot(), task.step());
  Link& link = links_[task.operation->program->steps[task.step()].peer];
  switch (header.kind) {
    case MessageKind::data:
      if (state.phase == Phase::blocked) return park(link, header, payload);
      if (state.phase != Phase::awaiting_data) return protocol_error(link, "data twice");
      return receive_data(task, header.offset, payload);
    case MessageKind::ready:
    case MessageKind::available: {
      const std::size_t size = header.kind == MessageKind::ready ? sizeof(PlaceWire) : kAvailableSize;
      if (payload.size() != size || state.has_place) return protocol_error(link, "a place that is none");
      // A step that is blocked keeps the place; its own state has no other use for the field until then.
      std::memcpy(&state.place, payload.data(), size);
      state.has_place = true;
      if (header.kind == MessageKind::available) {
        state.place_is_shared = header.reserved == static_cast<std::uint8_t>(PlaceKind::mapped);
        state.is_staged = header.reserved == static_cast<std::uint8_t>(PlaceKind::staged);
      }
      if (state.phase == Phase::awaiting_data) return read_available(task);
      if (state.phase == Phase::awaiting_ready) return start_payload(task);
      if (state.phase != Phase::blocked && state.phase != Phase::computing) return protocol_error(link, "a place late");
      return;
    }
    case MessageKind::consumed:
      if (state.phase != Phase::awaiting_consumed) return protocol_error(link, "thanks for nothing");
      return complete(task);
    default: return;
  }
}

void Engine::park(Link& link, const MessageHeaderWire& header, std::span<const std::byte> payload) {
  // What a peer may be ahead with: kRunAhead operations, of each the slices in flight, and of each of these the
  // transfers of this pair: less than twice the ranks in every algorithm; the rest is for plans of users that have
  // more. A message of which this end has to keep the bytes is not larger than the eager limit, so memory is bounded by
  // both.
  const std::size_t transfers_max = 2 * links_.size() + 64;
  const std::size_t parked_max = std::size_t{kRunAhead} * std::max(options_.slicing.in_flight, 1U) * transfers_max;
  if (payload.size() > std::max<std::uint64_t>(link.eager_limit, sizeof(PlaceWire))) {
    return protocol_error(link, "data that nobody was ready for, above the eager limit");
  }
  if (link.parked.size() >= parked_max) return protocol_error(link, "more messages than calls can be ahead");
  link.parked.push_back({header, {payload.begin(), payload.end()}});
  ++num_parked_;
}

std::uint64_t Engine::parked_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const Link& link : links_) {
    for (const Parked& parked : link.parked) bytes += sizeof parked.header + parked.payload.size();
  }
  return bytes;
}

void Engine::unpark(Task task) {
  const Operation& operation = *task.operation;
  const ProgramStep& step = operation.program->steps[task.step()];
  Link& link = links_[step.peer];
  const std::uint32_t slice = operation.slots[task.slot()].slice;
  const bool is_send = step.kind == plan::StepKind::send;
  const auto is_ours = [&](const Parked& parked) {
    const MessageHeaderWire& header = parked.header;
    return header.kind != MessageKind::mismatch && header.channel == operation.channel &&
           header.sequence == operation.sequence && header.transfer == step.transfer && header.slice == slice &&
           is_for_sender(header.kind) == is_send && header.signature == operation.program->signature;
  };
  for (std::size_t i = 0; i < link.parked.size() && operation.in_flight;) {
    if (!is_ours(link.parked[i])) {
      ++i;
      continue;
    }
    const Parked parked = std::move(link.parked[i]);
    link.parked.erase(link.parked.begin() + static_cast<std::ptrdiff_t>(i));
    --num_parked_;
    apply(task, parked.header, parked.payload);
  }
}

void Engine::report_progress() {
  report_is_due_ = false;
  const bool collectives_due = completed_ - last_report_ >= kReportEvery;
  bool is_told = true;
  for (Link& link : links_) {
    if (link.endpoint == nullptr || link.is_closed || failure_) continue;
    MessageHeaderWire header;
    header.kind = MessageKind::progress;
    if (collectives_due) {
      header.channel = Channel::collective;
      header.sequence = completed_;
      is_told = post(link, header, {}) && is_told;
    }
    if (link.receives_completed - link.receives_reported >= kReportEvery) {
      header.channel = Channel::point_to_point;
      header.sequence = link.receives_completed;
      if (post(link, header, {})) {
        link.receives_reported = link.receives_completed;
      } else {
        is_told = false;
      }
    }
  }
  if (!is_told) {
    report_is_due_ = true;  // A full ring: again after the next progress.
  } else if (collectives_due) {
    last_report_ = completed_;
  }
}

}  // namespace weft::collectives::engine
