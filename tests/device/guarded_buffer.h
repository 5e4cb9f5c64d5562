#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace weft::device {

/// Memory between two inaccessible pages: a kernel that leaves it crashes the test.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(std::size_t size_bytes)
      : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))), inner_((size_bytes + page_ - 1) / page_ * page_) {
    void* const memory = mmap(nullptr, inner_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    base_ = static_cast<std::byte*>(memory);
    if (mprotect(begin(), inner_, PROT_READ | PROT_WRITE) != 0) std::abort();
  }
  ~GuardedBuffer() { munmap(base_, inner_ + 2 * page_); }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  /// The first byte after the lower guard; page-aligned.
  [[nodiscard]] std::byte* begin() const { return base_ + page_; }
  /// `size_bytes` that end at the upper guard.
  [[nodiscard]] std::byte* last(std::size_t size_bytes) const { return begin() + inner_ - size_bytes; }
  [[nodiscard]] std::size_t size_bytes() const { return inner_; }
  void fill(int value) { std::memset(begin(), value, inner_); }

 private:
  std::size_t page_;
  std::size_t inner_;
  std::byte* base_ = nullptr;
};

}  // namespace weft::device
