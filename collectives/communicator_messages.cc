// Send and receive.
#include <fmt/format.h>

#include "collectives/communicator_entry.h"

namespace weft::collectives {
namespace {

Status check_point_to_point(const void* buffer, std::uint64_t count, device::DataType type, Rank peer, RankCount ranks,
                            std::string_view what) {
  if (peer.value() >= ranks.value()) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}: peer {} of {} ranks", what, peer.value(), ranks.value())};
  }
  if (static_cast<std::size_t>(type) >= device::kDataTypes) {
    return Error{ErrorCode::invalid_argument, fmt::format("{}: unknown element type", what)};
  }
  if (count > (std::uint64_t{1} << 56) / device::size_of(type)) {
    return Error{ErrorCode::out_of_range, fmt::format("{}: {} elements exceed the address space", what, count)};
  }
  if (count > 0 && buffer == nullptr) {
    return Error{ErrorCode::invalid_argument, fmt::format("{}: the buffer is null but the count is {}", what, count)};
  }
  if (reinterpret_cast<std::uintptr_t>(buffer) % device::size_of(type) != 0) {
    return Error{ErrorCode::invalid_argument, fmt::format("{}: the buffer is not aligned to its elements", what)};
  }
  return {};
}

engine::Call point_to_point_call(std::uint64_t count, device::DataType type) {
  engine::Call call;
  call.contract.collective = Collective::broadcast;  // Only a name on the wire; the channel says what it is.
  call.contract.ranks = RankCount{2};
  call.type = type;
  call.count = count;
  return call;
}

}  // namespace

Result<engine::RequestId> Communicator::start_send(const void* send, std::uint64_t count, device::DataType type,
                                                   Rank peer) {
  WEFT_ENTER();
  WEFT_TRY(check_point_to_point(send, count, type, peer, ranks(), "send"));
  trim_programs();
  return engine_->start_point_to_point(
      programs_.point_to_point(point_to_point_call(count, type), plan::StepKind::send, peer), send, nullptr);
}

Result<engine::RequestId> Communicator::start_receive(void* receive, std::uint64_t count, device::DataType type,
                                                      Rank peer) {
  WEFT_ENTER();
  WEFT_TRY(check_point_to_point(receive, count, type, peer, ranks(), "receive"));
  trim_programs();
  return engine_->start_point_to_point(
      programs_.point_to_point(point_to_point_call(count, type), plan::StepKind::receive, peer), nullptr, receive);
}

}  // namespace weft::collectives
