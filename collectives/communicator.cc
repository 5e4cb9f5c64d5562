#include "collectives/communicator_entry.h"

#include <algorithm>
#include <new>

#include <fmt/format.h>

#include "collectives/fork_generation.h"
#include "collectives/shared_source.h"

namespace weft::collectives {
namespace {

plan::SlicingLimits slicing_of(const Settings& settings, const Shape& shape) {
  plan::SlicingLimits limits =
      shape.num_hosts() == 1 ? plan::SlicingLimits::one_host() : plan::SlicingLimits::several_hosts();
  if (const std::uint64_t size = settings.bytes(Setting::slice_size); size != 0) {
    limits = {.slice_bytes = std::max<std::uint64_t>(size, 64)};
  }
  if (const std::int64_t wanted = settings.integer(Setting::slices_in_flight); wanted != 0) {
    limits.in_flight = static_cast<std::uint32_t>(wanted);
  }
  return limits;
}

std::vector<transport::Transport*> pointers_to(const std::vector<std::unique_ptr<transport::Transport>>& transports) {
  std::vector<transport::Transport*> pointers;
  for (const auto& transport : transports) pointers.push_back(transport.get());
  return pointers;
}

}  // namespace

Communicator::Communicator(std::shared_ptr<Job> job, bootstrap::Group group, Wiring wiring,
                           select::AlgorithmSetting setting)
    : job_(std::move(job)),
      group_(std::move(group)),
      wiring_(std::move(wiring)),
      programs_(rank(), wiring_.shape, select::Machine{.cores_per_host = wiring_.cores_per_host}, std::move(setting),
                slicing_of(job_->settings, wiring_.shape)),
      waitable_{nullptr, pointers_to(wiring_.transports), Spin{job_->settings.duration(Setting::spin), wiring_.cores},
                &is_abort_wanted_, [this] { act_on_abort(); }},
      timeout_(job_->settings.duration(Setting::timeout)),
      fork_generation_(current_fork_generation()) {
  engine::Engine::Options options;
  options.own_rank = rank();
  options.links = wiring_.links;
  options.transports = waitable_.transports;
  options.memory = &shared_source();
  options.eager_limit = job_->settings.bytes(Setting::eager_limit);
  options.slicing = slicing_of(job_->settings, wiring_.shape);
  options.clock = &steady_clock();
  options.trace = &trace_;
  engine_ = std::make_unique<engine::Engine>(std::move(options));
  waitable_.engine = engine_.get();
}

bool Communicator::belongs_here() const noexcept { return fork_generation_ == current_fork_generation(); }

Communicator::~Communicator() {
  if (!belongs_here()) {
    // The child of a fork leaves the parent's links alone: nothing here may send, wake, unmap, write, or lock.
    (void)engine_.release();
    for (auto& transport : wiring_.transports) (void)transport.release();
    if (job_.use_count() == 1) (void)job_->session.release();
    (void)new (std::nothrow) std::shared_ptr<WaitList>(std::move(waitable_.list));
    (void)new (std::nothrow) Trace(std::move(trace_));
    return;
  }
  delist(waitable_);
  engine_.reset();
  wiring_.transports.clear();
}

Error Communicator::second_thread() {
  return Error{ErrorCode::invalid_argument, "the communicator is used by two threads at once",
               "Use one communicator per thread, or serialize the calls."};
}

Status Communicator::enter(const Occupied& occupied) {
  // First: of a fork that came while another thread was inside, the child has no such thread.
  if (!belongs_here()) {
    return Error{ErrorCode::closed, "this communicator belongs to the parent process",
                 "Create communicators after fork, in the process that uses them."};
  }
  if (!occupied.is_owner()) return second_thread();
  // Before the engine is looked at: the thread that used it last may still make progress on it while it waits for
  // another communicator.
  enlist(waitable_);
  return {};
}

Status Communicator::check_usable() {
  if (is_finalized_) return Error{ErrorCode::closed, "the communicator is finalized"};
  if (is_abort_wanted_.load(std::memory_order_relaxed)) act_on_abort();
  if (engine_->failure()) {
    (void)engine_->progress();  // Peers that could not be told yet are.
    return *engine_->failure();
  }
  return {};
}

void Communicator::trim_programs() {
  if (!programs_.is_full()) return;
  programs_.trim([this](const engine::Program& program) { return engine_->is_running(program); });
  last_program_ = nullptr;
}

Status Communicator::make_room() {
  trim_programs();
  if (engine_->has_room()) return {};
  if (!wait_until(waitable_, timeout_, [this] { return engine_->has_room() || engine_->failure(); })) {
    return Error{ErrorCode::timeout, "64 operations are in flight and none of them finishes"};
  }
  if (engine_->failure()) return *engine_->failure();
  return {};
}

Result<engine::RequestId> Communicator::start(const UserCall& call) {
  WEFT_ENTER();
  return start_entered(call);
}

Status Communicator::run(const UserCall& call) {
  WEFT_ENTER();
  WEFT_TRY_ASSIGN(const engine::RequestId request, start_entered(call));
  return wait_entered(request, timeout_).status;
}

Result<engine::RequestId> Communicator::start_entered(const UserCall& call) {
  if (programs_.is_full() || !engine_->has_room()) WEFT_TRY(make_room());
  if (last_program_ == nullptr || call != last_call_) {
    WEFT_TRY_ASSIGN(const Contract contract, contract_of(call, rank(), ranks()));
    WEFT_TRY_ASSIGN(last_program_, programs_.collective({contract, call.type, call.op, call.count}));
    last_call_ = call;
  }
  return engine_->start(*last_program_, call.send, call.receive);
}

Result<engine::RequestId> Communicator::start_plan(const plan::Plan& plan, const UserCall& call) {
  WEFT_ENTER();
  UserCall with_contract = call;
  with_contract.collective = plan.contract.collective;
  with_contract.root = plan.contract.root.value();
  WEFT_TRY_ASSIGN(const Contract contract, contract_of(with_contract, rank(), ranks()));
  if (!(contract == plan.contract)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("the plan is for {} ranks {}, the call has {} ranks {}", plan.contract.ranks.value(),
                             plan.contract.placement == Placement::in_place ? "in place" : "out of place",
                             ranks().value(), contract.placement == Placement::in_place ? "in place" : "out of place")};
  }
  WEFT_TRY(make_room());
  WEFT_TRY_ASSIGN(const engine::Program* program, programs_.own_plan(plan, {contract, call.type, call.op, call.count}));
  return engine_->start(*program, call.send, call.receive);
}

Answer Communicator::unknown_request() {
  return {true, Error{ErrorCode::invalid_argument, "not a request in flight", "Each request is completed once."}};
}

Answer Communicator::wait(engine::RequestId request, Nanos patience) {
  const Occupied occupied(*this);
  if (Status entered = enter(occupied); !entered) return {false, std::move(entered)};
  if (!engine_->is_known(request)) [[unlikely]]
    return unknown_request();
  return wait_entered(request, patience);
}

Answer Communicator::wait_entered(engine::RequestId request, Nanos patience) {
  if (wait_for(waitable_, request, patience)) return {true, engine_->collect(request)};
  return {false,
          Error{ErrorCode::timeout, engine_->explain(request),
                "Look at those ranks: are they stopped, slow, or in another call? WEFT_TIMEOUT sets the limit."}};
}

Answer Communicator::test(engine::RequestId request) {
  const Occupied occupied(*this);
  if (Status entered = enter(occupied); !entered) return {false, std::move(entered)};
  if (!engine_->is_known(request)) [[unlikely]]
    return unknown_request();
  if (is_abort_wanted_.load(std::memory_order_relaxed)) act_on_abort();
  (void)engine_->progress();
  if (!engine_->is_finished(request)) return {};
  return {true, engine_->collect(request)};
}

}  // namespace weft::collectives
