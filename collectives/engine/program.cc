#include "collectives/engine/program.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace weft::collectives::engine {
namespace {

Slicing slicing_of(std::uint64_t longest_part_bytes, plan::SlicingLimits limits) {
  Slicing slicing;
  slicing.num_slices =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(limits.num_slices(longest_part_bytes), 1U << 30));
  slicing.in_flight = std::min(slicing.num_slices, std::max(1U, limits.in_flight));
  return slicing;
}

/// Mixes the layout into the plan's number, so that ranks with different slicing do not talk past each other.
std::uint64_t with_slicing(std::uint64_t plan_id, const plan::Plan& plan, const Slicing& slicing) {
  std::uint64_t mixed = plan_id;
  for (const std::uint64_t value :
       {std::uint64_t{plan.parts_per_block}, std::uint64_t{plan.num_transfers}, std::uint64_t{slicing.num_slices}}) {
    mixed = (mixed ^ value) * 0x9e3779b97f4a7c15ULL;
    mixed ^= mixed >> 29;
  }
  return mixed;
}

class Lowering {
 public:
  Lowering(const plan::Plan& plan, const Call& call, Rank rank, std::uint64_t slice_bytes_max)
      : plan_(plan), call_(call), rank_(rank), slice_bytes_max_(slice_bytes_max) {
    const std::uint64_t blocks = plan.contract.output_blocks(rank);
    is_large_ = blocks * call.count * device::size_of(call.type) >= device::streaming_threshold_bytes();
    is_read_.resize(blocks * plan.parts_per_block);
    const auto mark = [&](const plan::Location& location) {
      if (location.buffer == plan::Buffer::output) is_read_[location.chunk] = true;
    };
    for (const plan::Step& step : plan.steps[rank.index()]) {
      if (step.kind != plan::StepKind::receive) mark(step.source);
      if (step.kind == plan::StepKind::reduce) mark(step.second);
    }
  }

  [[nodiscard]] Range part(std::uint32_t chunk) const {
    const std::uint32_t k = plan_.parts_per_block;
    return part_of(call_.count, k, chunk % k, line_unit(device::size_of(call_.type)));
  }

  [[nodiscard]] Operand operand(const plan::Location& location) const {
    Operand result;
    result.buffer = location.buffer;
    if (location.buffer == plan::Buffer::scratch) {
      result.begin_bytes = location.chunk * slice_bytes_max_;
    } else {
      const std::uint64_t block = location.chunk / plan_.parts_per_block;
      result.begin_bytes = (block * call_.count + part(location.chunk).begin) * device::size_of(call_.type);
    }
    return result;
  }

  /// Results that leave the caches anyway bypass them, unless this rank needs them again. A slice alone looks small, so
  /// this is decided by all that the call writes.
  [[nodiscard]] device::Stores stores(const plan::Location& destination) const {
    const bool bypasses = is_large_ && destination.buffer == plan::Buffer::output && !is_read_[destination.chunk];
    return bypasses ? device::Stores::streaming : device::Stores::cached;
  }

  [[nodiscard]] ProgramStep step(const plan::Step& planned) const {
    ProgramStep lowered;
    lowered.kind = planned.kind;
    lowered.num_before = static_cast<std::uint16_t>(planned.after.size());
    lowered.peer = planned.peer.value();
    lowered.transfer = planned.transfer;
    const bool has_destination = planned.kind != plan::StepKind::send;
    const bool has_source = planned.kind != plan::StepKind::receive;
    lowered.part_elems = part(has_destination ? planned.destination.chunk : planned.source.chunk).size();
    if (has_source) lowered.source = operand(planned.source);
    if (has_destination) lowered.destination = operand(planned.destination);
    if (planned.kind == plan::StepKind::reduce) lowered.second = operand(planned.second);
    if (has_destination) lowered.stores = stores(planned.destination);
    if (planned.kind == plan::StepKind::reduce || planned.kind == plan::StepKind::receive_reduce) {
      lowered.reduce = device::reduce_function(call_.type, call_.op, lowered.stores);
    }
    return lowered;
  }

 private:
  const plan::Plan& plan_;
  const Call& call_;
  Rank rank_;
  std::uint64_t slice_bytes_max_;
  bool is_large_ = false;      ///< What this rank writes does not fit its share of the last cache.
  std::vector<bool> is_read_;  ///< Chunks of the output that a step of this rank reads.
};

void link_successors(Program& program, const std::vector<plan::Step>& steps) {
  for (const plan::Step& step : steps) {
    for (const std::uint32_t before : step.after) ++program.steps[before].num_after;
  }
  std::uint32_t next = 0;
  for (ProgramStep& step : program.steps) {
    step.first_after = next;
    next += step.num_after;
    step.num_after = 0;
  }
  program.after.resize(next);
  for (std::uint32_t index = 0; index < steps.size(); ++index) {
    for (const std::uint32_t before : steps[index].after) {
      ProgramStep& predecessor = program.steps[before];
      program.after[predecessor.first_after + predecessor.num_after++] = index;
    }
  }
}

}  // namespace

Result<std::unique_ptr<Program>> lower(const plan::Plan& plan, std::uint64_t plan_id, const Call& call, Rank rank,
                                       plan::SlicingLimits limits) {
  const std::uint64_t element_size = device::size_of(call.type);
  const std::uint64_t blocks =
      std::max<std::uint64_t>({1, plan.contract.input_blocks(rank), plan.contract.output_blocks(rank)});
  constexpr std::uint64_t kAddressSpace = std::uint64_t{1} << 56;
  if (call.count > kAddressSpace / element_size / blocks) {
    return Error{ErrorCode::out_of_range, call.describe() + ": the buffers would exceed the address space"};
  }

  auto program = std::make_unique<Program>();
  program->call = call;
  program->label = call.describe();
  program->algorithm = plan.name;
  program->element_size = static_cast<std::uint32_t>(element_size);
  program->num_transfers = plan.num_transfers;
  program->input_bytes = plan.contract.input_blocks(rank) * call.count * element_size;
  program->output_bytes = plan.contract.output_blocks(rank) * call.count * element_size;

  const std::uint64_t unit = line_unit(element_size);
  const std::uint64_t part_bytes = longest_part(call.count, plan.parts_per_block, unit) * element_size;
  program->slicing = slicing_of(part_bytes, limits);
  program->slicing.slice_bytes_max =
      longest_part(part_bytes / element_size, program->slicing.num_slices, unit) * element_size + 64;
  const std::uint64_t scratch_chunks = plan.scratch_chunks.empty() ? 0 : plan.scratch_chunks[rank.index()];
  program->scratch_bytes = call.count > 0 ? scratch_chunks * program->slicing.slice_bytes_max : 0;

  const Lowering lowering{plan, call, rank, program->slicing.slice_bytes_max};
  const std::vector<plan::Step>& steps = plan.steps[rank.index()];
  program->step_of_transfer.assign(plan.num_transfers, Program::kNoStep);
  program->steps.reserve(steps.size());
  for (const plan::Step& step : steps) {
    if (step.after.size() > std::numeric_limits<std::uint16_t>::max()) {
      return Error{ErrorCode::limit_exceeded, plan.name + ": a step waits for more than 65535 others"};
    }
    if (plan::is_transfer(step.kind)) {
      program->step_of_transfer[step.transfer] = static_cast<std::uint32_t>(program->steps.size());
    }
    program->steps.push_back(lowering.step(step));
  }
  link_successors(*program, steps);

  if (call.op == device::ReduceOp::avg && reduces(call.contract.collective)) {
    const std::uint32_t chunks = plan.contract.output_blocks(rank) * plan.parts_per_block;
    for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) program->averaged.push_back(lowering.part(chunk));
  }
  program->plan_id = with_slicing(plan_id, plan, program->slicing);
  program->signature = call.signature(program->plan_id);
  program->wire = call.to_wire(program->plan_id);
  return program;
}

std::unique_ptr<Program> point_to_point_program(const Call& call, plan::StepKind kind, Rank peer,
                                                plan::SlicingLimits limits) {
  auto program = std::make_unique<Program>();
  program->call = call;
  program->label =
      fmt::format("{}(count {}, {}) {} rank {}", kind == plan::StepKind::send ? "send" : "receive", call.count,
                  device::name_of(call.type), kind == plan::StepKind::send ? "to" : "from", peer.value());
  program->algorithm = "point to point";
  program->element_size = static_cast<std::uint32_t>(device::size_of(call.type));
  program->num_transfers = 1;
  const std::uint64_t bytes = call.count * program->element_size;
  // What goes one way only, and is reduced with nothing, leaves room for more in the caches.
  limits.slice_bytes = std::max(limits.slice_bytes, limits.whole_bytes);
  program->slicing = slicing_of(bytes, limits);
  program->input_bytes = program->output_bytes = bytes;
  const std::uint64_t unit = line_unit(program->element_size);
  program->slicing.slice_bytes_max =
      longest_part(call.count, program->slicing.num_slices, unit) * program->element_size + 64;
  ProgramStep step;
  step.kind = kind;
  step.peer = peer.value();
  step.part_elems = call.count;
  step.source.buffer = plan::Buffer::input;
  step.destination.buffer = plan::Buffer::output;
  step.stores = bytes >= device::copy_streaming_threshold_bytes() ? device::Stores::streaming : device::Stores::cached;
  program->steps.push_back(step);
  program->step_of_transfer = {0};
  program->plan_id = program->slicing.num_slices;
  program->signature = call.signature(program->plan_id);
  program->wire = call.to_wire(program->plan_id);
  return program;
}

}  // namespace weft::collectives::engine
