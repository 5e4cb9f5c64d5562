#include "collectives/communicator.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/check.h"
#include "base/log.h"
#include "base/random.h"
#include "base/wire.h"
#include "collectives/shared_source.h"

namespace weft::collectives {
namespace {

/// Grows in the child of every fork, so that a communicator knows that it is in the wrong process without a system
/// call.
std::atomic<std::uint32_t> fork_generation{0};

std::uint32_t current_fork_generation() {
  static const bool is_installed = [] {
    return pthread_atfork(nullptr, nullptr, [] { fork_generation.fetch_add(1, std::memory_order_relaxed); }) == 0;
  }();
  (void)is_installed;
  return fork_generation.load(std::memory_order_relaxed);
}

engine::SlicingLimits slicing_of(const Settings& settings) {
  engine::SlicingLimits limits;
  if (const std::uint64_t size = settings.bytes(Setting::slice_size); size != 0) {
    limits.slice_bytes = std::max<std::uint64_t>(size, 64);
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

class Communicator::Occupied {
 public:
  explicit Occupied(Communicator& communicator)
      : communicator_(communicator), is_owner_(!communicator.is_occupied_.exchange(true, std::memory_order_acquire)) {
    // An abort by another thread is no second user: it is over in a moment, and this call shall report it.
    while (!is_owner_ && communicator.is_aborting_.load(std::memory_order_acquire)) {
      sched_yield();
      is_owner_ = !communicator.is_occupied_.exchange(true, std::memory_order_acquire);
    }
  }
  ~Occupied() {
    if (is_owner_) communicator_.is_occupied_.store(false, std::memory_order_release);
  }
  Occupied(const Occupied&) = delete;
  Occupied& operator=(const Occupied&) = delete;
  [[nodiscard]] bool is_owner() const noexcept { return is_owner_; }

 private:
  Communicator& communicator_;
  bool is_owner_;
};

Result<std::unique_ptr<Communicator>> Communicator::create(std::shared_ptr<Job> job) {
  bootstrap::Group group;
  if (job->session) {
    group = job->session->world();
  } else {
    group.members = {Rank{0}};
  }
  return create_in(std::move(job), std::move(group));
}

Result<std::unique_ptr<Communicator>> Communicator::create_in(std::shared_ptr<Job> job, bootstrap::Group group) {
  WEFT_TRY_ASSIGN(select::AlgorithmSetting setting,
                  select::AlgorithmSetting::parse(job->settings.text(Setting::algorithm)));
  Wiring wiring = lone_wiring();
  if (group.members.size() > 1) {
    WEFT_TRY_ASSIGN(wiring, connect_group(*job->session, group, job->settings));
  }
  Trace trace;
  if (job->settings.is_set(Setting::trace_file)) {
    WEFT_TRY_ASSIGN(trace, Trace::create({.path = job->settings.text(Setting::trace_file),
                                          .rank = job->identity.rank,
                                          .ranks = RankCount{job->identity.size}}));
  }
  std::unique_ptr<Communicator> made{
      new Communicator(std::move(job), std::move(group), std::move(wiring), std::move(setting))};
  made->trace_ = std::move(trace);
  return made;
}

Communicator::Communicator(std::shared_ptr<Job> job, bootstrap::Group group, Wiring wiring,
                           select::AlgorithmSetting setting)
    : job_(std::move(job)),
      group_(std::move(group)),
      wiring_(std::move(wiring)),
      programs_(rank(), wiring_.shape, select::Machine{.cores_per_host = wiring_.cores_per_host}, std::move(setting),
                slicing_of(job_->settings)),
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
  options.slicing = slicing_of(job_->settings);
  options.clock = &steady_clock();
  options.trace = &trace_;
  engine_ = std::make_unique<engine::Engine>(std::move(options));
  waitable_.engine = engine_.get();
}

Communicator::~Communicator() {
  delist(waitable_);
  if (fork_generation_ != current_fork_generation()) {
    // The child of a fork leaves the parent's links alone: nothing here may send, wake or unmap.
    (void)engine_.release();
    for (auto& transport : wiring_.transports) (void)transport.release();
    if (job_.use_count() == 1) (void)job_->session.release();
    return;
  }
  engine_.reset();
  wiring_.transports.clear();
}

Error Communicator::second_thread() {
  return Error{ErrorCode::invalid_argument, "the communicator is used by two threads at once",
               "Use one communicator per thread, or serialize the calls."};
}

Status Communicator::enter(const Occupied& occupied) {
  // First: of a fork that came while another thread was inside, the child has no such thread.
  if (fork_generation_ != current_fork_generation()) {
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

#define WEFT_ENTER()              \
  const Occupied occupied(*this); \
  WEFT_TRY(enter(occupied));      \
  WEFT_TRY(check_usable())

void Communicator::trim_programs() {
  if (!programs_.is_full() || engine_->num_in_flight() > 0) return;
  programs_.trim();
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

Answer Communicator::wait(engine::RequestId request, Nanos patience) {
  const Occupied occupied(*this);
  if (Status entered = enter(occupied); !entered) return {false, std::move(entered)};
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
  if (is_abort_wanted_.load(std::memory_order_relaxed)) act_on_abort();
  (void)engine_->progress();
  if (!engine_->is_finished(request)) return {};
  return {true, engine_->collect(request)};
}

Result<std::unique_ptr<Communicator>> Communicator::split(std::int32_t color, std::int32_t key) {
  WEFT_ENTER();
  const std::uint64_t split = ++num_splits_;
  if (!job_->session) {
    if (color < 0) return std::unique_ptr<Communicator>{};
    return create_in(job_, group_);
  }
  ByteWriter own;
  own.number(static_cast<std::uint32_t>(color)).number(static_cast<std::uint32_t>(key));
  WEFT_TRY_ASSIGN(const auto blobs,
                  job_->session->all_gather(group_, fmt::format("split {}", split), own.bytes(), exchange_deadline()));
  struct Member {
    std::int32_t key;
    std::uint32_t index;
  };
  std::vector<Member> members;
  for (std::uint32_t index = 0; index < blobs.size(); ++index) {
    ByteReader reader(blobs[index]);
    const auto its_color = static_cast<std::int32_t>(reader.number<std::uint32_t>());
    const auto its_key = static_cast<std::int32_t>(reader.number<std::uint32_t>());
    WEFT_TRY(reader.finish("a rank's split"));
    if (its_color == color) members.push_back({its_key, index});
  }
  if (color < 0) return std::unique_ptr<Communicator>{};
  std::stable_sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.key < b.key; });

  bootstrap::Group group;
  // Unique in the job as long as 64-bit mixes of (parent, split, color) do not collide; equal on all members.
  Random mixer{group_.id ^ (split << 32) ^ static_cast<std::uint32_t>(color)};
  group.id = mixer.next() | 1;
  for (std::uint32_t position = 0; position < members.size(); ++position) {
    group.members.push_back(group_.members[members[position].index]);
    if (members[position].index == group_.own_index) group.own_index = position;
  }
  return create_in(job_, std::move(group));
}

Result<std::unique_ptr<Communicator>> Communicator::duplicate() { return split(0, 0); }

Result<std::uint32_t> Communicator::create_window(std::byte* base, std::uint64_t size_bytes) {
  WEFT_ENTER();
  if (size_bytes > 0 && base == nullptr) {
    return Error{ErrorCode::invalid_argument, fmt::format("window: base is null but the size is {}", size_bytes)};
  }
  const std::uint32_t window = num_windows_++;
  WEFT_TRY(engine_->open_window(window, base, size_bytes));
  ByteWriter own;
  for (std::uint32_t peer = 0; peer < ranks().value(); ++peer) {
    WEFT_TRY_ASSIGN(const auto remote, engine_->window_for(window, Rank{peer}));
    own.number(remote.key.first).number(remote.key.second).number(remote.size_bytes);
    own.number(std::uint8_t{remote.is_shared}).number(std::uint8_t{remote.is_writable});
  }
  if (!job_->session) {
    WEFT_TRY_ASSIGN(const auto remote, engine_->window_for(window, Rank{0}));
    engine_->set_remote_window(window, Rank{0}, remote);
    return window;
  }
  WEFT_TRY_ASSIGN(const auto blobs, job_->session->all_gather(group_, fmt::format("window {}", window), own.bytes(),
                                                              exchange_deadline()));
  for (std::uint32_t peer = 0; peer < blobs.size(); ++peer) {
    ByteReader reader(blobs[peer]);
    for (std::uint32_t target = 0; target < ranks().value(); ++target) {
      engine::Engine::RemoteWindow remote;
      remote.key.first = reader.number<std::uint64_t>();
      remote.key.second = reader.number<std::uint64_t>();
      remote.size_bytes = reader.number<std::uint64_t>();
      remote.is_shared = reader.number<std::uint8_t>() != 0;
      remote.is_writable = reader.number<std::uint8_t>() != 0;
      if (target == group_.own_index) engine_->set_remote_window(window, Rank{peer}, remote);
    }
    WEFT_TRY(reader.finish("a rank's window"));
  }
  return window;
}

Status Communicator::destroy_window(std::uint32_t window) {
  WEFT_ENTER();
  engine_->start_closing_window(window);
  const bool is_quiet = wait_until(waitable_, timeout_,
                                   [&] { return engine_->failure().has_value() || engine_->is_window_quiet(window); });
  if (engine_->failure()) return *engine_->failure();
  if (!is_quiet) {
    return Error{ErrorCode::timeout, fmt::format("window {}: some ranks have not destroyed it", window),
                 "All ranks must destroy a window, as they all created it."};
  }
  engine_->close_window(window);
  return {};
}

Result<engine::RequestId> Communicator::put(std::uint32_t window, const void* source, std::uint64_t size_bytes,
                                            Rank peer, std::uint64_t offset, bool with_signal) {
  WEFT_ENTER();
  if (peer.value() >= ranks().value()) {
    return Error{ErrorCode::invalid_argument, fmt::format("put: peer {} of {} ranks", peer.value(), ranks().value())};
  }
  if (size_bytes > 0 && source == nullptr) return Error{ErrorCode::invalid_argument, "put: the source is null"};
  return engine_->start_put(window, source, size_bytes, peer, offset, with_signal);
}

Status Communicator::wait_signal(std::uint32_t window, Rank peer, std::uint64_t count, Nanos patience) {
  WEFT_ENTER();
  if (peer.value() >= ranks().value()) {
    return Error{ErrorCode::invalid_argument, fmt::format("signal: peer {} of {}", peer.value(), ranks().value())};
  }
  const bool is_done = wait_until(waitable_, patience, [&] {
    return engine_->failure().has_value() || engine_->signals(window, peer) >= count || engine_->is_closed(peer);
  });
  if (engine_->failure()) return *engine_->failure();
  if (engine_->is_closed(peer) && engine_->signals(window, peer) < count) {
    return Error{ErrorCode::peer_failed, wiring_.links[peer.index()].name + " closed its communicator without a signal"}
        .about(peer);
  }
  if (!is_done) {
    return Error{ErrorCode::timeout, fmt::format("window {} waits for {} signals from {}; {} arrived", window, count,
                                                 wiring_.links[peer.index()].name, engine_->signals(window, peer))}
        .about(peer);
  }
  engine_->take_signals(window, peer, count);
  return {};
}

void Communicator::act_on_abort() {
  std::string reason;
  {
    const std::lock_guard lock(abort_mutex_);
    reason = abort_reason_;
  }
  engine_->fail(Error{ErrorCode::closed, fmt::format("aborted by rank {}: {}", rank().value(), reason)});
}

void Communicator::abort(const std::string& reason) {
  {
    const std::lock_guard lock(abort_mutex_);
    if (abort_reason_.empty()) abort_reason_ = reason.empty() ? "no reason given" : reason;
  }
  is_abort_wanted_.store(true, std::memory_order_release);
  // Nobody inside: act here and now. Otherwise the thread inside does, within its longest sleep.
  if (fork_generation_ != current_fork_generation() || is_occupied_.exchange(true, std::memory_order_acquire)) return;
  is_aborting_.store(true, std::memory_order_release);
  exclusively(waitable_, [this] { act_on_abort(); });
  is_aborting_.store(false, std::memory_order_release);
  is_occupied_.store(false, std::memory_order_release);
}

Status Communicator::finalize() {
  const Occupied occupied(*this);
  const bool is_child = fork_generation_ != current_fork_generation();
  if (!is_child && !occupied.is_owner()) {
    return Error{ErrorCode::invalid_argument, "the communicator is destroyed while another thread uses it",
                 "Let the other thread's call end first; weft_abort ends it early."};
  }
  if (is_finalized_) return {};
  is_finalized_ = true;
  if (is_child) return {};
  enlist(waitable_);
  Status status;
  if (is_abort_wanted_.load(std::memory_order_relaxed)) act_on_abort();
  if (!engine_->failure() && !wait_until(waitable_, timeout_, [this] {
        return engine_->num_in_flight() == 0 || engine_->failure() || is_abort_wanted_.load();
      })) {
    status = Error{ErrorCode::timeout, "operations are still in flight while the communicator is destroyed"};
  }
  delist(waitable_);
  engine_->close();
  if (Status closed = trace_.close(); !closed && status) status = closed.error();
  return status;
}

}  // namespace weft::collectives
