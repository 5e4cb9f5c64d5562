#pragma once

#include <cstddef>
#include <vector>

#include "transport/transport.h"

namespace weft::transport::shm {

/// Completions of this side's own operations, kept from the post until the poll. Bounded: a full queue is pressure.
class DoneQueue {
 public:
  static constexpr std::size_t kCapacity = 1024;
  DoneQueue() : slots_(kCapacity) {}
  [[nodiscard]] bool is_full() const noexcept { return head_ - tail_ == kCapacity; }
  [[nodiscard]] bool is_empty() const noexcept { return head_ == tail_; }
  void push(const Completion& done) noexcept { slots_[head_++ % kCapacity] = done; }
  Completion pop() noexcept { return slots_[tail_++ % kCapacity]; }

 private:
  std::vector<Completion> slots_;
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
};

}  // namespace weft::transport::shm
