#pragma once

#include <atomic>
#include <cstdint>

namespace weft::collectives {

/// Counts the forks that led to this process from the one that loaded the library. Read by every call, so in line.
extern std::atomic<std::uint32_t> fork_generation;

/// Another one in the child of every fork, so that what belongs to the parent is recognised without a system call. A
/// thread of the parent may have held any lock at that moment, for ever as far as the child is concerned: what is of
/// another generation is neither locked nor destroyed, only left alone. Thread: any.
[[nodiscard]] inline std::uint32_t current_fork_generation() noexcept {
  return fork_generation.load(std::memory_order_relaxed);
}

}  // namespace weft::collectives
