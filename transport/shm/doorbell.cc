#include "transport/shm/doorbell.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <limits>

namespace weft::transport::shm {
namespace {

constexpr std::uint32_t kBellIndex = std::numeric_limits<std::uint32_t>::max();

/// Not FUTEX_PRIVATE: the word is shared between processes.
long futex(std::atomic<Sleep>& word, int operation, std::uint32_t value, const timespec* timeout) noexcept {
  return ::syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

Status add_to_epoll(int epoll, int fd, std::uint32_t index) noexcept {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = index;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0) return {};
  const int err = errno;
  return Error::from_errno(err == ENOSPC ? ErrorCode::limit_exceeded : ErrorCode::system, "epoll_ctl", err,
                           err == ENOSPC ? "Raise fs.epoll.max_user_watches" : "");
}

}  // namespace

bool join_asymmetric_barrier() noexcept {
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

void Bell::wake() noexcept {
  switch (sleep_->exchange(Sleep::awake, std::memory_order_acq_rel)) {
    case Sleep::in_futex: futex(*sleep_, FUTEX_WAKE, 1, nullptr); return;
    case Sleep::on_fd: {
      // EAGAIN means that the pipe is full of earlier wake-ups: then it is readable, which is all that is wanted.
      const char byte = 1;
      [[maybe_unused]] const ssize_t written = ::write(pipe_.get(), &byte, 1);
      return;
    }
    case Sleep::awake: return;  // Another sender was faster.
  }
}

Status Sleeper::open(std::atomic<Sleep>& sleep, bool has_barrier) {
  sleep_ = &sleep;
  has_barrier_ = has_barrier;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return Error::from_errno(ErrorCode::limit_exceeded, "pipe2", errno, "Raise the limit of open files (ulimit -n)");
  }
  pipe_read_ = Descriptor{ends[0]};
  pipe_write_ = Descriptor{ends[1]};
  epoll_ = Descriptor{::epoll_create1(EPOLL_CLOEXEC)};
  if (!epoll_.is_open()) {
    return Error::from_errno(ErrorCode::limit_exceeded, "epoll_create1", errno,
                             "Raise the limit of open files (ulimit -n)");
  }
  return add_to_epoll(epoll_.get(), pipe_read_.get(), kBellIndex);
}

Status Sleeper::watch(const Descriptor& process, std::uint32_t index) noexcept {
  return add_to_epoll(epoll_.get(), process.get(), index);
}

void Sleeper::unwatch(const Descriptor& process) noexcept {
  if (process.is_open()) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, process.get(), nullptr);
}

std::size_t Sleeper::dead(std::span<std::uint32_t> indices) noexcept {
  std::array<epoll_event, 64> events;
  const int room = static_cast<int>(std::min(events.size(), indices.size() + 1));
  const int found = ::epoll_wait(epoll_.get(), events.data(), room, 0);
  std::size_t count = 0;
  for (int i = 0; i < found; ++i) {
    const std::uint32_t index = events[static_cast<std::size_t>(i)].data.u32;
    if (index != kBellIndex && count < indices.size()) indices[count++] = index;
  }
  return count;
}

void Sleeper::announce(Wake wake) noexcept {
  // Bytes of an earlier sleep would end the new one at once.
  if (wake == Wake::by_event_fd) drain();
  announced_ = true;
  is_drain_due_ = is_drain_due_ || wake == Wake::by_event_fd;
  sleep_->store(wake == Wake::by_event_fd ? Sleep::on_fd : Sleep::in_futex, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (has_barrier_) {
    [[maybe_unused]] const long status = ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
  }
}

void Sleeper::withdraw() noexcept {
  if (!announced_) return;
  announced_ = false;
  sleep_->exchange(Sleep::awake, std::memory_order_acq_rel);
}

bool Sleeper::wait(Nanos limit) noexcept {
  const Nanos bounded = std::max(limit, Nanos::zero());
  const timespec timeout{.tv_sec = static_cast<time_t>(bounded.count() / 1'000'000'000),
                         .tv_nsec = static_cast<long>(bounded.count() % 1'000'000'000)};
  // Woken, or the word changed before: EAGAIN. Interrupted or timed out: the word is still in_futex.
  futex(*sleep_, FUTEX_WAIT, static_cast<std::uint32_t>(Sleep::in_futex), &timeout);
  return sleep_->load(std::memory_order_acquire) != Sleep::in_futex;
}

void Sleeper::drain_pipe() noexcept {
  // A sender that took the word may write its byte after this; then the next sleep on the fd ends early, no more.
  std::array<char, 64> bytes;
  [[maybe_unused]] const ssize_t got = ::read(pipe_read_.get(), bytes.data(), bytes.size());
  is_drain_due_ = announced_;
}

}  // namespace weft::transport::shm
