// Sends of a rank to itself: the n-th send meets the n-th receive, in whichever order they are started, and is one
// copy.
#include <algorithm>

#include <fmt/format.h>

#include "collectives/engine/engine.h"

namespace weft::collectives::engine {

void Engine::match_own(Operation& operation) {
  Link& link = links_[options_.own_rank.index()];
  const bool is_send = operation.program->steps.front().kind == plan::StepKind::send;
  const auto& others = is_send ? link.receive_operations : link.send_operations;
  const auto found = std::find_if(others.begin(), others.end(), [&](const Operation* other) {
    return other->sequence == operation.sequence && other->partner == nullptr;
  });
  if (found == others.end()) return;
  Operation& send = is_send ? operation : **found;
  Operation& receive = is_send ? **found : operation;
  if (send.program->signature != receive.program->signature) {
    return fail(Error{ErrorCode::mismatch,
                      fmt::format("the send of this rank to itself is {}, its receive is {}", send.program->label,
                                  receive.program->label),
                      "Sends and receives of one pair of ranks match in the order of their calls."});
  }
  const std::byte* from = send.input().base;
  std::byte* to = receive.output().base;
  const std::uint64_t size_bytes = send.input().size_bytes;
  send.partner = &receive;
  receive.partner = &send;
  if (size_bytes == 0) return finish_with_partner(receive);
  if (from != to && from < to + size_bytes && to < from + size_bytes) {
    const Error cause{ErrorCode::invalid_argument, "the buffers of a send to this rank itself overlap"};
    fail_operation(send, cause);
    return fail_operation(receive, cause);
  }
  device::Device* device = receive.output().device != nullptr ? receive.output().device : send.input().device;
  if (device == nullptr) device = &device::host_device();
  const device::Ticket ticket = device->copy(to, from, size_bytes);
  if (ticket == device::Ticket::done) return finish_with_partner(receive);
  computing_.push_back({{&receive, 0, 0}, device, ticket});
}

void Engine::finish_with_partner(Operation& operation) {
  Operation& partner = *operation.partner;
  finish(operation);
  finish(partner);
}

}  // namespace weft::collectives::engine
