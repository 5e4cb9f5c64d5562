#include "collectives/arguments.h"

#include <fmt/format.h>

namespace weft::collectives {
namespace {

/// A range of addresses; nothing for a buffer that this rank does not use.
struct Span {
  std::uintptr_t begin = 0;
  std::uint64_t size_bytes = 0;
  [[nodiscard]] std::uintptr_t end() const noexcept { return begin + size_bytes; }
};

bool overlap(const Span& a, const Span& b) noexcept {
  return a.size_bytes > 0 && b.size_bytes > 0 && a.begin < b.end() && b.begin < a.end();
}

Status check_buffer(std::string_view which, const Span& span, std::size_t element_size, Collective collective) {
  if (span.size_bytes == 0) return {};
  if (span.begin == 0) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}: the {} buffer is null but {} bytes of it are used on this rank", name_of(collective),
                             which, span.size_bytes)};
  }
  if (span.begin % element_size != 0) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}: the {} buffer at {:#x} is not aligned to its {}-byte elements", name_of(collective),
                             which, span.begin, element_size)};
  }
  return {};
}

}  // namespace

Result<Contract> contract_of(const UserCall& call, Rank own, RankCount ranks) {
  const auto refuse = [&](std::string text) {
    return Error{ErrorCode::invalid_argument, fmt::format("{}: {}", name_of(call.collective), text)};
  };
  if (static_cast<std::size_t>(call.type) >= device::kDataTypes) return refuse("unknown element type");
  if (static_cast<std::size_t>(call.op) >= device::kReduceOps) return refuse("unknown reduction");
  if (has_root(call.collective) && call.root >= ranks.value()) {
    return refuse(fmt::format("root {} of {} ranks", call.root, ranks.value()));
  }
  Contract contract;
  contract.collective = call.collective;
  contract.ranks = ranks;
  contract.root = Rank{has_root(call.collective) ? call.root : 0};

  const std::size_t element_size = device::size_of(call.type);
  constexpr std::uint64_t kAddressSpace = std::uint64_t{1} << 56;
  if (call.count > kAddressSpace / element_size / ranks.value()) {
    return Error{ErrorCode::out_of_range,
                 fmt::format("{}: {} elements a block exceed the address space", name_of(call.collective), call.count)};
  }
  const std::uint64_t block_bytes = call.count * element_size;
  const Span send{reinterpret_cast<std::uintptr_t>(call.send), block_bytes * contract.input_blocks(own)};
  const Span receive{reinterpret_cast<std::uintptr_t>(call.receive), block_bytes * contract.output_blocks(own)};
  WEFT_TRY(check_buffer("send", send, element_size, call.collective));
  WEFT_TRY(check_buffer("receive", receive, element_size, call.collective));
  if (!overlap(send, receive)) return contract;

  contract.placement = Placement::in_place;
  const auto shared = contract.shared_block(own);
  if (call.collective != Collective::all_to_all && shared) {
    const bool input_is_inside = receive.size_bytes >= send.size_bytes;
    const std::uintptr_t inner = input_is_inside ? send.begin : receive.begin;
    const std::uintptr_t outer = input_is_inside ? receive.begin : send.begin;
    if (inner == outer + *shared * block_bytes) return contract;
  }
  return Error{ErrorCode::invalid_argument,
               fmt::format("{}: send [{:#x}, {:#x}) and receive [{:#x}, {:#x}) overlap, but not as an in-place call",
                           name_of(call.collective), send.begin, send.end(), receive.begin, receive.end()),
               "Use separate buffers, or place them as weft.h says under In place."};
}

}  // namespace weft::collectives
