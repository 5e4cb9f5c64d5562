#include "collectives/engine/engine.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "device/devices.h"

namespace weft::collectives::engine {

Engine::Engine(Options options) : options_(std::move(options)), arena_(*options_.memory, options_.transports) {
  WEFT_CHECK(options_.transports.size() <= kTransportsMax, "a communicator has at most kTransportsMax transports");
  links_.reserve(options_.links.size());
  for (const LinkInfo& info : options_.links) {
    Link& link = links_.emplace_back();
    link.name = info.name;
    if (info.endpoint == nullptr) continue;
    link.endpoint = info.endpoint;
    link.transport_index = info.transport_index;
    link.transport = options_.transports[info.transport_index];
    link.capabilities = info.endpoint->capabilities();
    WEFT_CHECK(link.capabilities.message_size_max >= 256, "a message holds the header and a mismatch's description");
    // A multiple of a cache line, so that the pieces of a train of messages split no element.
    link.payload_max = (link.capabilities.message_size_max - sizeof(MessageHeaderWire)) / 64 * 64;
    const std::uint64_t wanted = options_.eager_limit != 0 ? options_.eager_limit : link.capabilities.eager_limit;
    link.eager_limit = std::min<std::uint64_t>(wanted, link.payload_max);
  }
  tasks_.reserve(1024);
  retries_.reserve(256);
  retrying_.reserve(256);
}

Engine::~Engine() {
  if (num_in_flight_ > 0) fail(Error{ErrorCode::closed, "the communicator is destroyed"});
  for (const auto& operation : operations_) release_registrations(*operation);
  for (std::uint32_t window = 0; window < windows_.size(); ++window) close_window(window);
}

OwnedBuffer Engine::owned_buffer(const void* base, std::uint64_t size_bytes) const {
  // The const of an input is kept by the plan: no verified plan writes one. Only where input and output are the same
  // memory is it cast away for real.
  auto* bytes = static_cast<std::byte*>(const_cast<void*>(base));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  return {bytes, size_bytes, size_bytes == 0 || base == nullptr ? nullptr : device::owner_of(bytes)};
}

Operation* Engine::acquire_operation(const Program& program, Channel channel, const void* input, void* output) {
  Operation* operation = nullptr;
  if (free_operations_.empty()) {
    operation = operations_.emplace_back(std::make_unique<Operation>()).get();
    operation->index = static_cast<std::uint32_t>(operations_.size() - 1);
    free_operations_.reserve(operations_.size());
  } else {
    operation = free_operations_.back();
    free_operations_.pop_back();
  }
  operation->program = &program;
  operation->channel = channel;
  operation->is_finished = false;
  operation->in_flight = true;
  operation->error.reset();
  operation->partner = nullptr;
  operation->input() = owned_buffer(input, program.input_bytes);
  operation->output() = owned_buffer(output, program.output_bytes);
  operation->next_slice = 0;
  operation->slices_left = program.slicing.num_slices;
  operation->slots.assign(program.slicing.in_flight, SliceSlot{});
  operation->states.resize(program.slicing.in_flight * program.steps.size());
  if (options_.trace != nullptr) operation->started = options_.trace->now();
  ++num_in_flight_;
  return operation;
}

Result<RequestId> Engine::start(const Program& program, const void* input, void* output) {
  if (failure_) return *failure_;
  WEFT_DCHECK(has_room(), "the caller makes room before it starts");
  Operation& operation = *acquire_operation(program, Channel::collective, input, output);
  operation.sequence = next_sequence_++;
  collectives_[operation.sequence % kInFlightMax] = &operation;
  called_[operation.sequence % kCalled] = program.wire;
  WEFT_TRY(begin(operation));
  return RequestId{operation.index, operation.generation};
}

Result<RequestId> Engine::start_point_to_point(const Program& program, const void* input, void* output) {
  if (failure_) return *failure_;
  Operation& operation = *acquire_operation(program, Channel::point_to_point, input, output);
  Link& link = links_[program.steps.front().peer];
  if (program.steps.front().kind == plan::StepKind::send) {
    operation.sequence = link.sends_started++;
    if (link.sent.empty()) link.sent.resize(kRunAhead);
    link.sent[operation.sequence % kRunAhead] = program.wire;
    link.send_operations.push_back(&operation);
  } else {
    operation.sequence = link.receives_started++;
    link.receive_operations.push_back(&operation);
  }
  if (link.endpoint == nullptr) {
    match_own(operation);
  } else {
    WEFT_TRY(begin(operation));
  }
  return RequestId{operation.index, operation.generation};
}

Status Engine::begin(Operation& operation) {
  const Program& program = *operation.program;
  if (program.scratch_bytes > 0) {
    auto scratch = arena_.acquire(program.slicing.in_flight * program.scratch_bytes);
    if (!scratch) {
      // The operation counts in the order of calls, so the communicator cannot go on without it.
      fail(scratch.error());
      (void)collect(RequestId{operation.index, operation.generation});
      return *failure_;
    }
    operation.scratch().base = *scratch;
  }
  if (num_parked_ > 0) check_parked_signatures(operation);
  if (program.steps.empty() && operation.in_flight) {
    // Nothing to wait for. A loop: slices that end while they are started would nest as deep as there are slices.
    for (std::uint32_t slice = 0; slice < program.slicing.num_slices; ++slice) average(operation, slice);
    finish(operation);
    return {};
  }
  const std::uint32_t slots = program.slicing.in_flight;
  for (std::uint32_t slot = 0; slot < slots && operation.in_flight; ++slot) activate_slice(operation, slot);
  run_tasks();
  if (report_is_due_) report_progress();
  return {};
}

void Engine::activate_slice(Operation& operation, std::uint32_t slot) {
  const Program& program = *operation.program;
  const auto num_steps = static_cast<std::uint32_t>(program.steps.size());
  operation.slots[slot] = {operation.next_slice++, num_steps};
  StepState* states = &operation.state(slot, 0);
  for (std::uint32_t step = 0; step < num_steps; ++step) {
    states[step] = StepState{};
    states[step].before_left = program.steps[step].num_before;
  }
  for (std::uint32_t step = 0; step < num_steps; ++step) {
    if (states[step].before_left == 0) tasks_.emplace_back(&operation, slot, step);
  }
}

void Engine::run_tasks() {
  while (first_task_ < tasks_.size()) {
    const Task task = tasks_[first_task_++];
    if (task.operation->in_flight) run(task);
  }
  tasks_.clear();
  first_task_ = 0;
}

void Engine::run(Task task) {
  switch (task.operation->program->steps[task.step()].kind) {
    case plan::StepKind::send: return run_send(task);
    case plan::StepKind::receive:
    case plan::StepKind::receive_reduce: return run_receive(task);
    case plan::StepKind::copy:
    case plan::StepKind::reduce: return run_local(task);
  }
}

void Engine::complete(Task task) {
  Operation& operation = *task.operation;
  const Program& program = *operation.program;
  StepState& state = operation.state(task.slot(), task.step());
  state.phase = Phase::complete;
  if (state.buffer != nullptr) {
    arena_.release(state.buffer);
    state.buffer = nullptr;
  }
  const ProgramStep& step = program.steps[task.step()];
  for (std::uint32_t next = 0; next < step.num_after; ++next) {
    const std::uint32_t successor = program.after[step.first_after + next];
    if (--operation.state(task.slot(), successor).before_left == 0)
      tasks_.emplace_back(&operation, task.slot(), successor);
  }
  if (--operation.slots[task.slot()].steps_left == 0) finish_slice(operation, task.slot());
}

void Engine::average(Operation& operation, std::uint32_t slice) {
  const Program& program = *operation.program;
  // All of this slice's sends have been read by their receivers, so its output is this rank's alone by now.
  for (const Range& part : program.averaged) {
    const Range range = program.slice_of(part.size(), slice);
    std::byte* values = operation.output().base + (part.begin + range.begin) * program.element_size;
    device::Device& device = operation.output().device != nullptr ? *operation.output().device : device::host_device();
    const device::Ticket ticket =
        device.finish_average(values, range.size(), program.call.type, program.call.contract.ranks.value());
    while (!device.is_done(ticket)) {
    }
  }
}

void Engine::finish_slice(Operation& operation, std::uint32_t slot) {
  const Program& program = *operation.program;
  if (!program.averaged.empty()) average(operation, operation.slots[slot].slice);
  if (--operation.slices_left == 0) return finish(operation);
  if (operation.next_slice < program.slicing.num_slices) activate_slice(operation, slot);
}

void Engine::record(const Operation& operation) {
  const Program& program = *operation.program;
  const bool is_collective = operation.channel == Channel::collective;
  TraceEvent event;
  event.name = is_collective ? name_of(program.call.contract.collective) : std::string_view{"point to point"};
  event.lane = is_collective ? 0 : 1;
  event.begin = operation.started;
  event.end = options_.trace->now();
  event.arguments = {TraceArgument{"sequence", operation.sequence},
                     TraceArgument{"bytes", program.call.count * program.element_size},
                     TraceArgument{"slices", program.slicing.num_slices}};
  event.num_arguments = 3;
  options_.trace->record(event);
}

void Engine::finish(Operation& operation) {
  if (options_.trace != nullptr && options_.trace->is_enabled()) record(operation);
  operation.in_flight = false;
  operation.is_finished = true;
  --num_in_flight_;
  if (operation.scratch().base != nullptr) {
    arena_.release(operation.scratch().base);
    operation.scratch().base = nullptr;
  }
  if (!operation.error) release_registrations(operation);
  if (operation.channel == Channel::collective) {
    collectives_[operation.sequence % kInFlightMax] = nullptr;
    while (completed_ != next_sequence_ && collectives_[completed_ % kInFlightMax] == nullptr) ++completed_;
    report_is_due_ = report_is_due_ || completed_ - last_report_ >= kReportEvery;
  } else if (operation.program != nullptr && !operation.program->steps.empty()) {
    Link& link = links_[operation.program->steps.front().peer];
    std::erase(link.send_operations, &operation);
    if (std::erase(link.receive_operations, &operation) > 0) ++link.receives_completed;
    if (link.endpoint == nullptr) return;
    report_is_due_ = report_is_due_ || link.receives_completed - link.receives_reported >= kReportEvery;
  }
}

void Engine::release_registrations(Operation& operation) {
  for (auto& of_buffer : operation.registrations) {
    for (std::size_t index = 0; index < options_.transports.size(); ++index) {
      if (!of_buffer[index]) continue;
      options_.transports[index]->release_memory(*of_buffer[index]);
      of_buffer[index].reset();
    }
  }
}

bool Engine::is_running(const Program& program) const noexcept {
  return std::any_of(operations_.begin(), operations_.end(), [&](const auto& operation) {
    return operation->program == &program && (operation->in_flight || operation->is_finished);
  });
}

bool Engine::is_finished(RequestId request) const noexcept {
  const Operation& operation = *operations_[request.index];
  return operation.generation != request.generation || operation.is_finished;
}

Status Engine::collect(RequestId request) {
  Operation& operation = *operations_[request.index];
  if (operation.generation != request.generation) {
    return Error{ErrorCode::invalid_argument, "this request was completed and collected before"};
  }
  WEFT_CHECK(operation.is_finished, "only a finished operation is collected");
  ++operation.generation;
  operation.is_finished = false;
  free_operations_.push_back(&operation);
  if (operation.error) release_registrations(operation);
  if (operation.error) return std::move(*operation.error);
  return {};
}

bool Engine::progress() {
  bool worked = false;
  if (!retries_.empty()) {
    std::swap(retries_, retrying_);
    for (Task task : retrying_) {
      if (task.operation->in_flight) run(task);
    }
    retrying_.clear();
    worked = first_task_ < tasks_.size();
  }
  if (!computing_.empty()) poll_devices();
  for (std::uint32_t index = 0; index < options_.transports.size(); ++index) {
    const std::size_t count = options_.transports[index]->poll(completions_);
    for (std::size_t i = 0; i < count; ++i) handle(completions_[i], index);
    worked = worked || count > 0;
    if (num_refusals_ > 0 && count == 0) judge_refusals(index);
  }
  if (first_task_ < tasks_.size()) {
    worked = true;
    run_tasks();
  }
  if (num_puts_ > 0) progress_puts();
  if (report_is_due_) report_progress();
  if (num_windows_closing_ > 0) tell_closing_windows();
  if (mismatch_) progress_mismatch();
  if (num_faults_due_ > 0) tell_fault();
  return worked;
}

}  // namespace weft::collectives::engine
