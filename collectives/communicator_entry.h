#pragma once

#include <sched.h>

#include "collectives/communicator.h"

// What the sources of Communicator share: how a call gets in.
namespace weft::collectives {

class Communicator::Occupied {
 public:
  explicit Occupied(Communicator& communicator)
      : communicator_(communicator), is_owner_(!communicator.is_occupied_.exchange(true, std::memory_order_acquire)) {
    // An abort by another thread is no second user: it is over in a moment, and this call shall report it.
    while (!is_owner_ && communicator.belongs_here() && communicator.is_aborting_.load(std::memory_order_acquire)) {
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

/// At the beginning of every call that the communicator may refuse.
#define WEFT_ENTER()              \
  const Occupied occupied(*this); \
  WEFT_TRY(enter(occupied));      \
  WEFT_TRY(check_usable())

}  // namespace weft::collectives
