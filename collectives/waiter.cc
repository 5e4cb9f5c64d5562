#include "collectives/waiter.h"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <ctime>
#include <mutex>

#include "collectives/fork_generation.h"

namespace weft::collectives {

/// The communicators that one thread uses. Whoever touches one of them on behalf of another one, or takes one away,
/// locks.
struct WaitList {
  std::mutex mutex;
  std::vector<Waitable*> waitables;
  std::atomic<std::size_t> size{0};  ///< Of `waitables`, to be read without the lock.
};

namespace {

/// The longest sleep: an abort by another thread is noticed within it.
constexpr Nanos kSleepMax = std::chrono::milliseconds(50);
/// The same while something is to be posted again or a device works: nobody wakes us when there is room.
constexpr Nanos kSleepToPostAgain = std::chrono::microseconds(200);
/// How many empty polls of a communicator go by between looks at the others and at the clock.
constexpr std::uint32_t kOthersEvery = 8;

/// The list of this thread, once it has one: to be compared without the guards of what has a destructor.
constinit thread_local WaitList* own_list_or_null = nullptr;

const std::shared_ptr<WaitList>& own_list() {
  static thread_local auto list = std::make_shared<WaitList>();
  static thread_local std::uint32_t generation = current_fork_generation();
  if (generation != current_fork_generation()) [[unlikely]] {
    // The parent's list: it holds communicators of the parent, and another thread may have held its lock.
    (void)new std::shared_ptr<WaitList>(std::move(list));
    list = std::make_shared<WaitList>();
    generation = current_fork_generation();
  }
  own_list_or_null = list.get();
  return list;
}

/// Something is in flight, or a peer may wait for what could not be sent yet (a report of progress, a failure).
bool is_active(const engine::Engine& engine) noexcept { return engine.num_in_flight() > 0 || engine.must_poll(); }

/// Precondition: the list is locked.
bool progress_others(const WaitList& list, const Waitable& own) {
  bool worked = false;
  for (Waitable* other : list.waitables) {
    if (other != &own && is_active(*other->engine)) worked = other->engine->progress() || worked;
  }
  return worked;
}

/// Every transport that must be able to wake this thread.
std::vector<transport::Transport*> wakers(const WaitList& list, const Waitable& own) {
  std::vector<transport::Transport*> all = own.transports;
  for (const Waitable* other : list.waitables) {
    if (other == &own || !is_active(*other->engine)) continue;
    all.insert(all.end(), other->transports.begin(), other->transports.end());
  }
  return all;
}

/// The longest sleep that `own` and the list's others allow. Precondition: as sleep_on.
Nanos longest_sleep(const WaitList& list, const Waitable& own) {
  bool must_poll = own.engine->must_poll();
  for (const Waitable* other : list.waitables) must_poll = must_poll || other->engine->must_poll();
  return must_poll ? kSleepToPostAgain : kSleepMax;
}

/// Precondition: the list is locked, or holds nothing but `own`.
void sleep_on(const WaitList& list, const Waitable& own, Nanos limit) {
  const std::vector<transport::Transport*> all = wakers(list, own);
  if (all.empty()) {
    const timespec pause{0, std::min<long>(static_cast<long>(limit.count()), 1'000'000)};
    (void)nanosleep(&pause, nullptr);
    return;
  }
  const auto wake = all.size() == 1 ? transport::Wake::by_sleep : transport::Wake::by_event_fd;
  bool is_armed = true;
  std::size_t num_armed = 0;
  for (; num_armed < all.size() && is_armed; ++num_armed) is_armed = all[num_armed]->arm(wake);
  if (is_armed) {
    if (wake == transport::Wake::by_sleep) {
      all.front()->sleep(limit);
    } else {
      std::vector<pollfd> fds;
      fds.reserve(all.size());
      for (transport::Transport* transport : all) fds.push_back({transport->event_fd(), POLLIN, 0});
      const timespec timeout{static_cast<time_t>(limit.count() / 1'000'000'000),
                             static_cast<long>(limit.count() % 1'000'000'000)};
      (void)ppoll(fds.data(), fds.size(), &timeout, nullptr);
    }
  }
  for (std::size_t i = 0; i < num_armed; ++i) all[i]->disarm();
}

}  // namespace

void enlist(Waitable& waitable) {
  if (waitable.list != nullptr && waitable.list.get() == own_list_or_null) return;
  const std::shared_ptr<WaitList>& list = own_list();
  delist(waitable);
  const std::lock_guard lock(list->mutex);
  list->waitables.push_back(&waitable);
  list->size.store(list->waitables.size(), std::memory_order_relaxed);
  waitable.list = list;
}

void delist(Waitable& waitable) {
  if (!waitable.list) return;
  {
    const std::lock_guard lock(waitable.list->mutex);
    std::erase(waitable.list->waitables, &waitable);
    waitable.list->size.store(waitable.list->waitables.size(), std::memory_order_relaxed);
  }
  waitable.list.reset();
}

void exclusively(Waitable& waitable, const std::function<void()>& work) {
  if (!waitable.list) return work();
  const std::lock_guard lock(waitable.list->mutex);
  work();
}

template <class IsDone>
static bool wait_loop(Waitable& own, Nanos patience, const IsDone& is_done) {
  own.spin.reset();
  std::optional<Deadline> deadline;
  std::uint32_t polls = 0;
  WaitList& list = *own.list;
  const bool has_others = list.size.load(std::memory_order_relaxed) > 1;
  while (!is_done()) {
    bool worked = own.engine->progress();
    if (own.is_interrupted->load(std::memory_order_relaxed)) [[unlikely]]
      own.on_interrupt();
    if (has_others && ++polls % kOthersEvery == 0) {
      const std::lock_guard lock(list.mutex);
      worked = progress_others(list, own) || worked;
    }
    if (worked) {
      own.spin.reset();
      continue;
    }
    switch (own.spin.next()) {
      case Spin::Step::poll: own.spin.pause(); break;
      case Spin::Step::yield: sched_yield(); break;
      case Spin::Step::sleep: {
        std::unique_lock lock(list.mutex, std::defer_lock);
        if (has_others) lock.lock();
        if (has_others && progress_others(list, own)) break;
        if (!deadline) deadline = Deadline::after(patience);
        const Nanos left = deadline->remaining();
        if (left == Nanos::zero()) return is_done();
        sleep_on(list, own, std::min(left, longest_sleep(list, own)));
        break;
      }
    }
  }
  return true;
}

bool wait_until(Waitable& own, Nanos patience, const std::function<bool()>& is_done) {
  return wait_loop(own, patience, is_done);
}

bool wait_for(Waitable& own, engine::RequestId request, Nanos patience) {
  return wait_loop(own, patience, [&] { return own.engine->is_finished(request); });
}

}  // namespace weft::collectives
