// Bytes: where a step's pieces are, and the copies and reductions on them.
#include <cstring>

#include "base/check.h"
#include "collectives/engine/engine.h"

namespace weft::collectives::engine {

Piece Operation::slice_piece(std::uint32_t slot, const ProgramStep& step, const Operand& operand) noexcept {
  const OwnedBuffer& owner = buffer(operand.buffer);
  const Range range = program->slice_of(step.part_elems, slots[slot].slice);
  const std::uint64_t within =
      operand.buffer == plan::Buffer::scratch ? slot * program->scratch_bytes : range.begin * program->element_size;
  return {owner.base + operand.begin_bytes + within, range.size() * program->element_size, owner.device};
}

void Engine::run_local(Task task) {
  Operation& operation = *task.operation;
  const ProgramStep& step = operation.program->steps[task.step()];
  const Piece to = operation.piece(task.slot(), step, step.destination);
  if (to.size_bytes == 0) return complete(task);
  const Piece from = operation.piece(task.slot(), step, step.source);
  bool is_done = false;
  if (step.kind == plan::StepKind::copy) {
    is_done = start_copy(task, to, from);
  } else {
    is_done = start_reduce(task, to, from, operation.piece(task.slot(), step, step.second));
  }
  if (is_done) complete(task);
}

bool Engine::start_copy(Task task, const Piece& to, const Source& from) {
  device::Device* const device = to.device != nullptr ? to.device : from.device;
  if (device != nullptr) return start_on(device, task, device->copy(to.data, from.data, to.size_bytes));
  device::copy_bytes(to.data, from.data, to.size_bytes, task.operation->program->steps[task.step()].stores);
  return true;
}

bool Engine::start_reduce(Task task, const Piece& to, const Source& left, const Source& right) {
  const Program& program = *task.operation->program;
  const std::uint64_t count = to.size_bytes / program.element_size;
  device::Device* const device = to.device != nullptr ? to.device : left.device != nullptr ? left.device : right.device;
  if (device == nullptr) {
    program.steps[task.step()].reduce(to.data, left.data, right.data, count);
    return true;
  }
  return start_on(device, task,
                  device->reduce(to.data, left.data, right.data, count, program.call.type, program.call.op));
}

bool Engine::start_on(device::Device* device, Task task, device::Ticket ticket) {
  if (ticket == device::Ticket::done) return true;
  task.operation->state(task.slot(), task.step()).phase = Phase::computing;
  computing_.push_back({task, device, ticket});
  return false;
}

bool Engine::start_combine(Task task, std::uint64_t offset, const std::byte* bytes, std::uint64_t size_bytes) {
  if (size_bytes == 0) return true;
  Operation& operation = *task.operation;
  const ProgramStep& step = operation.program->steps[task.step()];
  const Source landed{bytes, nullptr};
  const Piece whole = operation.piece(task.slot(), step, step.destination);
  const Piece to{whole.data + offset, size_bytes, whole.device};
  if (step.kind == plan::StepKind::receive) return start_copy(task, to, landed);
  const Piece operand = operation.piece(task.slot(), step, step.source);
  return start_reduce(task, to, {operand.data + offset, operand.device}, landed);
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
    const plan::StepKind kind = work.task.operation->program->steps[work.task.step()].kind;
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
    const OwnedBuffer& buffer = which == 0 ? operation.input() : operation.output();
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
