// Bytes: where a step's pieces are, and the copies and reductions on them.
#include <cstring>

#include "base/check.h"
#include "collectives/engine/engine.h"

namespace weft::collectives::engine {

Engine::Piece Engine::piece(Operation& operation, std::uint32_t slot, const ProgramStep& step,
                            const Operand& operand) const {
  const Program& program = *operation.program;
  const Range range = program.slice_of(step.part_elems, operation.slots[slot].slice);
  const std::uint64_t size_bytes = range.size() * program.element_size;
  if (operand.buffer == plan::Buffer::scratch) {
    const std::uint64_t area = std::uint64_t{slot} * program.scratch_slots + operand.scratch_slot;
    return {operation.scratch + area * program.slicing.slice_bytes_max, size_bytes, nullptr};
  }
  const UserBuffer& buffer = operand.buffer == plan::Buffer::input ? operation.input : operation.output;
  return {buffer.base + operand.begin_bytes + range.begin * program.element_size, size_bytes, buffer.device};
}

void Engine::run_local(const Task& task) {
  Operation& operation = *task.operation;
  const ProgramStep& step = operation.program->steps[task.step];
  const Piece to = piece(operation, task.slot, step, step.destination);
  if (to.size_bytes == 0) return complete(task);
  const Piece from = piece(operation, task.slot, step, step.source);
  device::Device* device = to.device != nullptr ? to.device : from.device;
  device::Ticket ticket{};
  if (step.kind == plan::StepKind::copy) {
    ticket = (device != nullptr ? device : options_.host)->copy(to.data, from.data, to.size_bytes);
  } else {
    const Piece second = piece(operation, task.slot, step, step.second);
    if (device == nullptr) device = second.device;
    ticket = (device != nullptr ? device : options_.host)
                 ->reduce(to.data, from.data, second.data, to.size_bytes / operation.program->element_size,
                          operation.program->call.type, operation.program->call.op);
  }
  if (start_on(device, task, ticket)) complete(task);
}

bool Engine::start_on(device::Device* device, const Task& task, device::Ticket ticket) {
  if (ticket == device::Ticket::done) return true;
  task.operation->state(task.slot, task.step).phase = Phase::computing;
  computing_.push_back({task, device, ticket});
  return false;
}

bool Engine::start_combine(const Task& task, std::uint64_t offset, const std::byte* bytes, std::uint64_t size_bytes) {
  if (size_bytes == 0) return true;
  Operation& operation = *task.operation;
  const Program& program = *operation.program;
  const ProgramStep& step = program.steps[task.step];
  const Piece to = piece(operation, task.slot, step, step.destination);
  if (step.kind == plan::StepKind::receive) {
    device::Device* device = to.device != nullptr ? to.device : options_.host;
    return start_on(device, task, device->copy(to.data + offset, bytes, size_bytes));
  }
  const Piece operand = piece(operation, task.slot, step, step.source);
  device::Device* device = to.device != nullptr ? to.device : operand.device;
  if (device == nullptr) device = options_.host;
  return start_on(device, task,
                  device->reduce(to.data + offset, operand.data + offset, bytes, size_bytes / program.element_size,
                                 program.call.type, program.call.op));
}

void Engine::poll_devices() {
  for (std::size_t i = 0; i < computing_.size();) {
    const Computing work = computing_[i];
    if (!work.device->is_done(work.ticket)) {
      ++i;
      continue;
    }
    computing_[i] = computing_.back();
    computing_.pop_back();
    if (!work.task.operation->in_flight) continue;
    if (work.task.operation->partner != nullptr) {
      finish_with_partner(*work.task.operation);
      continue;
    }
    const plan::StepKind kind = work.task.operation->program->steps[work.task.step].kind;
    if (kind == plan::StepKind::send) {
      run(work.task);
    } else if (plan::is_transfer(kind)) {
      after_combine(work.task);
    } else {
      complete(work.task);
    }
  }
}

Result<Arena::Place> Engine::place_of(Operation& operation, const Link& link, const std::byte* address) {
  for (std::size_t which = 0; which < 2; ++which) {
    const UserBuffer& buffer = which == 0 ? operation.input : operation.output;
    if (buffer.base == nullptr || address < buffer.base || address >= buffer.base + buffer.size_bytes) continue;
    std::optional<transport::Registration>& registration = operation.registrations[which][link.transport_index];
    if (!registration) {
      const device::MemoryKind kind = buffer.device != nullptr
                                          ? device::MemoryKind::device
                                          : options_.memory->kind_of(buffer.base, buffer.size_bytes);
      WEFT_TRY_ASSIGN(registration, link.transport->register_memory(buffer.base, buffer.size_bytes, kind));
    }
    return Arena::Place{&*registration, static_cast<std::uint64_t>(address - buffer.base)};
  }
  return arena_.place_of(address, link.transport_index);
}

}  // namespace weft::collectives::engine
