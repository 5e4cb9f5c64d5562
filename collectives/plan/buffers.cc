#include "collectives/plan/buffers.h"

namespace weft::collectives::plan {
namespace {

/// Which of two buffers that share memory a plan names.
constexpr Buffer larger_buffer(Collective collective) noexcept {
  return collective == Collective::reduce_scatter || collective == Collective::scatter ? Buffer::input : Buffer::output;
}

}  // namespace

std::uint64_t num_chunks(const Plan& plan, Rank rank, Buffer buffer) noexcept {
  if (buffer == Buffer::scratch) return plan.scratch_chunks[rank.index()];
  const Contract& contract = plan.contract;
  if (contract.shared_block(rank) && buffer != larger_buffer(contract.collective)) return 0;
  const std::uint64_t blocks = buffer == Buffer::input ? contract.input_blocks(rank) : contract.output_blocks(rank);
  return blocks * plan.parts_per_block;
}

Location canonical(const Contract& contract, std::uint32_t parts_per_block, Location location) noexcept {
  if (location.buffer == Buffer::scratch) return location;
  const auto shared = contract.shared_block(location.rank);
  const Buffer larger = larger_buffer(contract.collective);
  if (!shared || location.buffer == larger) return location;
  // The smaller buffer is one block, so its chunk number is the part.
  return {location.rank, larger, *shared * parts_per_block + location.chunk};
}

bool is_writable(const Contract& contract, std::uint32_t parts_per_block, const Location& location) noexcept {
  if (location.buffer != Buffer::input) return true;
  const auto shared = contract.shared_block(location.rank);
  if (!shared) return false;
  return contract.collective == Collective::reduce_scatter || location.chunk / parts_per_block == *shared;
}

Reads reads_of(const Step& step) noexcept {
  switch (step.kind) {
    case StepKind::send:
    case StepKind::receive_reduce:
    case StepKind::copy: return {{step.source, {}}, 1};
    case StepKind::reduce: return {{step.source, step.second}, 2};
    case StepKind::receive: break;
  }
  return {};
}

}  // namespace weft::collectives::plan
