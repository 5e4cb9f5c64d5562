#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/trace.h"
#include "bootstrap/session.h"
#include "collectives/arguments.h"
#include "collectives/engine/engine.h"
#include "collectives/job.h"
#include "collectives/program_cache.h"
#include "collectives/waiter.h"
#include "collectives/wiring.h"

namespace weft::collectives {

/// What became of a request that was waited for or looked at.
struct Answer {
  /// True: the operation is over and `status` is its result; the request is void. False: it is still in flight, and
  /// `status` says why it was not waited for to its end: a timeout, a second thread, a child of fork; a success if it
  /// was only looked at.
  bool is_over = false;
  Status status;
};

/// A group of ranks that call collectives together: what weft_communicator_t is.
/// Thread: loop for every call (one thread at a time), except abort (any).
class Communicator {
 public:
  /// All ranks of the job. Collective; Thread: blocking.
  static Result<std::unique_ptr<Communicator>> create(std::shared_ptr<Job> job);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] Rank rank() const noexcept { return Rank{group_.own_index}; }
  [[nodiscard]] RankCount ranks() const noexcept {
    return RankCount{static_cast<std::uint32_t>(group_.members.size())};
  }
  [[nodiscard]] const Settings& settings() const noexcept { return job_->settings; }
  [[nodiscard]] const Wiring& wiring() const noexcept { return wiring_; }
  [[nodiscard]] ProgramCache& programs() noexcept { return programs_; }
  [[nodiscard]] engine::Engine& engine() noexcept { return *engine_; }

  /// Starts operations; see weft.h for shapes and errors.
  Result<engine::RequestId> start(const UserCall& call);
  Result<engine::RequestId> start_send(const void* send, std::uint64_t count, device::DataType type, Rank peer);
  Result<engine::RequestId> start_receive(void* receive, std::uint64_t count, device::DataType type, Rank peer);
  Result<engine::RequestId> start_plan(const plan::Plan& plan, const UserCall& call);

  /// Waits for the request and collects it.
  Answer wait(engine::RequestId request, Nanos patience);
  /// How long an operation may last (WEFT_TIMEOUT).
  [[nodiscard]] Nanos timeout() const noexcept { return timeout_; }
  /// start() and wait() in one: the latency path of blocking calls.
  Status run(const UserCall& call);
  /// Collects the request if it is complete. Never blocks.
  Answer test(engine::RequestId request);

  /// A communicator of the ranks that give the same color; null for a negative color.
  Result<std::unique_ptr<Communicator>> split(std::int32_t color, std::int32_t key);
  Result<std::unique_ptr<Communicator>> duplicate();

  /// See weft_window_create and its like.
  Result<std::uint32_t> create_window(std::byte* base, std::uint64_t size_bytes);
  Status destroy_window(std::uint32_t window);
  Result<engine::RequestId> put(std::uint32_t window, const void* source, std::uint64_t size_bytes, Rank peer,
                                std::uint64_t offset, bool with_signal);
  Status wait_signal(std::uint32_t window, Rank peer, std::uint64_t count, Nanos patience);

  /// Ends every operation here and at the peers. Thread: any.
  void abort(const std::string& reason);
  /// Finishes what is in flight (at most WEFT_TIMEOUT). Called once, before the destructor.
  Status finalize();
  /// False: finalize() was refused, because another thread is inside; the communicator goes on.
  [[nodiscard]] bool is_finalized() const noexcept { return is_finalized_; }
  /// False in the child of a fork, where it is to be left alone.
  [[nodiscard]] bool belongs_here() const noexcept;
  /// Who, where, how: JSON.
  [[nodiscard]] std::string describe() const;

 private:
  Communicator(std::shared_ptr<Job> job, bootstrap::Group group, Wiring wiring, select::AlgorithmSetting setting);
  static Result<std::unique_ptr<Communicator>> create_in(std::shared_ptr<Job> job, bootstrap::Group group);

  /// Held by every call, so that an abort by another thread acts at once between calls and is left to the call
  /// otherwise.
  class Occupied;
  [[nodiscard]] static Error second_thread();
  [[nodiscard]] static Answer unknown_request();
  /// The reason to refuse a call before anything is touched; else this thread's list has the communicator.
  [[nodiscard]] Status enter(const Occupied& occupied);
  [[nodiscard]] Status check_usable();
  /// The insides of start() and wait().
  Result<engine::RequestId> start_entered(const UserCall& call);
  Answer wait_entered(engine::RequestId request, Nanos patience);
  void trim_programs();
  /// Waits until one more collective can be in flight.
  Status make_room();
  void act_on_abort();
  [[nodiscard]] Deadline exchange_deadline() const { return Deadline::after(timeout_); }

  std::shared_ptr<Job> job_;
  bootstrap::Group group_;
  Wiring wiring_;
  ProgramCache programs_;
  std::unique_ptr<engine::Engine> engine_;
  Waitable waitable_;
  Trace trace_;
  Nanos timeout_;
  /// The latest collective that was checked, and its program: a loop makes the same call again.
  UserCall last_call_;
  const engine::Program* last_program_ = nullptr;
  std::uint64_t num_splits_ = 0;
  std::uint32_t num_windows_ = 0;
  std::uint32_t fork_generation_ = 0;
  bool is_finalized_ = false;
  std::atomic<bool> is_occupied_{false};
  std::atomic<bool> is_aborting_{false};  ///< Occupied by abort().
  std::atomic<bool> is_abort_wanted_{false};
  std::mutex abort_mutex_;  ///< Only around abort_reason_.
  std::string abort_reason_;
};

}  // namespace weft::collectives
