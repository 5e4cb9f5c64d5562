#include "collectives/fork_generation.h"

#include <pthread.h>

#include <atomic>

namespace weft::collectives {
namespace {

std::atomic<std::uint32_t> generation{0};

}  // namespace

std::uint32_t current_fork_generation() noexcept {
  static const bool is_installed = [] {
    return pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); }) == 0;
  }();
  (void)is_installed;
  return generation.load(std::memory_order_relaxed);
}

}  // namespace weft::collectives
