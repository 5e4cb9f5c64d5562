#include "tools/bench/collective_call.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "tools/bench/description.h"

namespace weft::tools {
namespace {

using collectives::Collective;
using collectives::Placement;

constexpr std::size_t kPage = 4096;

}  // namespace

Result<BenchMemory> BenchMemory::create(Memory kind, std::uint64_t size_bytes) {
  const std::uint64_t half = (size_bytes / kPage + 1) * kPage;
  if (kind == Memory::allocated) {
    void* send = nullptr;
    void* receive = nullptr;
    WEFT_TRY(checked(weft_memory_allocate(half, &send)));
    if (const Status made = checked(weft_memory_allocate(half, &receive)); !made) {
      weft_memory_free(send);
      return made.error();
    }
    return BenchMemory{kind, static_cast<std::byte*>(send), static_cast<std::byte*>(receive)};
  }
  auto* const send = static_cast<std::byte*>(std::aligned_alloc(kPage, half));
  auto* const receive = static_cast<std::byte*>(std::aligned_alloc(kPage, half));
  if (send == nullptr || receive == nullptr) {
    std::free(send);
    std::free(receive);
    return Error{ErrorCode::limit_exceeded, fmt::format("allocating twice {} bytes", half), "choose a smaller -e"};
  }
  // Page faults are not what is measured.
  std::memset(send, 0, half);
  std::memset(receive, 0, half);
  return BenchMemory{kind, send, receive};
}

BenchMemory::BenchMemory(BenchMemory&& other) noexcept
    : kind_(other.kind_),
      send_(std::exchange(other.send_, nullptr)),
      receive_(std::exchange(other.receive_, nullptr)) {}

BenchMemory::~BenchMemory() {
  if (kind_ == Memory::allocated) {
    weft_memory_free(send_);
    weft_memory_free(receive_);
  } else {
    std::free(send_);
    std::free(receive_);
  }
}

CollectiveCall::CollectiveCall(weft_communicator_t* communicator, const BenchMemory& memory, const Spec& call)
    : communicator_(communicator),
      call_(call),
      rank_(weft_rank(communicator)),
      ranks_(weft_size(communicator)),
      contract_{call.collective, RankCount{ranks_}, Rank{has_root(call.collective) ? call.root : 0}, call.placement},
      pattern_(call.type, reduces(call.collective) ? std::optional{call.op} : std::nullopt, ranks_) {
  const std::uint32_t inputs = contract_.input_blocks(Rank{rank_});
  const std::uint32_t outputs = contract_.output_blocks(Rank{rank_});
  if (inputs > 0) send_ = memory.send();
  if (outputs > 0) receive_ = memory.receive();
  const auto shared = call.placement == Placement::in_place ? contract_.shared_block(Rank{rank_}) : std::nullopt;
  if (!shared) return;
  const std::uint64_t offset = *shared * call.count * device::size_of(call.type);
  if (outputs >= inputs) {
    send_ = receive_ + offset;
  } else {
    receive_ = send_ + offset;
  }
}

void CollectiveCall::prepare() {
  const std::uint64_t block_bytes = call_.count * device::size_of(call_.type);
  // Outputs first: in place, the inputs lie inside.
  if (receive_ != nullptr) std::memset(receive_, 0x5a, contract_.output_blocks(Rank{rank_}) * block_bytes);
  if (send_ != nullptr) pattern_.fill(send_, rank_, 0, contract_.input_blocks(Rank{rank_}) * call_.count);
}

weft_status_t CollectiveCall::run() const noexcept {
  const auto type = static_cast<weft_type_t>(call_.type);
  const auto op = static_cast<weft_op_t>(call_.op);
  weft_communicator_t* const c = communicator_;
  const std::uint64_t count = call_.count;
  switch (call_.collective) {
    case Collective::all_reduce: return weft_all_reduce(c, send_, receive_, count, type, op);
    case Collective::reduce: return weft_reduce(c, send_, receive_, count, type, op, call_.root);
    case Collective::broadcast: return weft_broadcast(c, send_, receive_, count, type, call_.root);
    case Collective::all_gather: return weft_all_gather(c, send_, receive_, count, type);
    case Collective::reduce_scatter: return weft_reduce_scatter(c, send_, receive_, count, type, op);
    case Collective::gather: return weft_gather(c, send_, receive_, count, type, call_.root);
    case Collective::scatter: return weft_scatter(c, send_, receive_, count, type, call_.root);
    case Collective::all_to_all: return weft_all_to_all(c, send_, receive_, count, type);
    case Collective::barrier: return weft_barrier(c);
  }
  return WEFT_ERROR_INVALID_ARGUMENT;
}

std::uint64_t CollectiveCall::count_wrong() const {
  if (receive_ == nullptr || call_.count == 0) return 0;
  const std::uint64_t count = call_.count;
  const std::uint64_t own_first = rank_ * count;
  switch (call_.collective) {
    case Collective::all_reduce:
    case Collective::reduce: return pattern_.count_wrong_reduced(receive_, 0, count);
    case Collective::reduce_scatter: return pattern_.count_wrong_reduced(receive_, own_first, count);
    case Collective::broadcast: return pattern_.count_wrong_moved(receive_, call_.root, 0, count);
    case Collective::scatter: return pattern_.count_wrong_moved(receive_, call_.root, own_first, count);
    case Collective::barrier: return 0;
    case Collective::all_gather:
    case Collective::gather:
    case Collective::all_to_all: break;
  }
  std::uint64_t wrong = 0;
  const std::uint64_t first = call_.collective == Collective::all_to_all ? own_first : 0;
  for (std::uint32_t from = 0; from < ranks_; ++from) {
    wrong += pattern_.count_wrong_moved(receive_ + from * count * device::size_of(call_.type), from, first, count);
  }
  return wrong;
}

}  // namespace weft::tools
