#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/clock.h"
#include "base/result.h"
#include "transport/shm/descriptor.h"
#include "transport/shm/layout.h"
#include "transport/transport.h"

namespace weft::transport::shm {

/// Makes this process take part in barriers that a process about to sleep imposes on the others. True if it does.
/// Source: membarrier(2), MEMBARRIER_CMD_GLOBAL_EXPEDITED. Thread: any.
bool join_asymmetric_barrier() noexcept;

/// How a peer is woken. No wake-up is lost:
///   sender:  A store the message;      B barrier;  C load `sleep`
///   sleeper: D store `sleep`;          E barrier;  F look for messages
/// With both barriers full, C missing D and F missing A cannot both happen: either the sender sees the sleeper and
/// wakes it, or the sleeper sees the message and does not sleep. B runs with every message and E only before a sleep,
/// so all the cost is put into E: membarrier makes every running thread of the taking-part processes execute a full
/// barrier while E runs, wherever in its program it is. So B need only keep the compiler from moving C before A. Where
/// membarrier is missing in either process, B is a fence. The same holds with "room returned" in place of the message.
/// Taking `sleep` back to awake is an exchange, so one sender wakes, and one system call is made for each sleep.
class Bell {
 public:
  Bell() = default;
  Bell(std::atomic<Sleep>& sleep, Descriptor pipe, bool has_barrier) noexcept
      : sleep_(&sleep), pipe_(std::move(pipe)), has_barrier_(has_barrier) {}

  /// The barrier B. Call after the message (or the returned room) was stored.
  void barrier() const noexcept {
    if (has_barrier_) [[likely]] {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
  }
  /// Call after barrier().
  void ring_if_asleep() noexcept {
    if (sleep_->load(std::memory_order_relaxed) != Sleep::awake) [[unlikely]]
      wake();
  }

 private:
  void wake() noexcept;

  std::atomic<Sleep>* sleep_ = nullptr;
  Descriptor pipe_;
  bool has_barrier_ = false;
};

/// The owner's side of its doorbell, together with the watch over the peers' processes.
class Sleeper {
 public:
  /// Errors: limit_exceeded (open files), system.
  Status open(std::atomic<Sleep>& sleep, bool has_barrier);

  /// Readable when the doorbell was rung in Sleep::on_fd or when a watched process has ended.
  [[nodiscard]] int event_fd() const noexcept { return epoll_.get(); }
  /// What peers open (read-write: a pipe whose reader went away would raise SIGPIPE in the writer).
  [[nodiscard]] int bell_fd() const noexcept { return pipe_write_.get(); }

  /// Watches a process; `index` is what dead() reports.
  Status watch(const Descriptor& process, std::uint32_t index) noexcept;
  void unwatch(const Descriptor& process) noexcept;
  /// Indices of watched processes that have ended, at most indices.size(). Cost: a system call.
  std::size_t dead(std::span<std::uint32_t> indices) noexcept;

  /// Says that the owner is about to sleep, so that F may follow.
  void announce(Wake wake) noexcept;
  /// The owner is awake.
  void withdraw() noexcept;
  [[nodiscard]] bool is_announced() const noexcept { return announced_; }
  /// Blocks until the doorbell rings or `limit` passes, after announce(by_sleep). True: rung.
  bool wait(Nanos limit) noexcept;
  /// Takes what was written to the pipe; only does something after a sleep on the fd.
  void drain() noexcept {
    if (is_drain_due_) [[unlikely]]
      drain_pipe();
  }

 private:
  void drain_pipe() noexcept;

  std::atomic<Sleep>* sleep_ = nullptr;
  Descriptor pipe_read_;
  Descriptor pipe_write_;
  Descriptor epoll_;
  bool has_barrier_ = false;
  bool announced_ = false;
  bool is_drain_due_ = false;
};

}  // namespace weft::transport::shm
