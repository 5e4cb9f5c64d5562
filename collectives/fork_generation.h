#pragma once

#include <cstdint>

namespace weft::collectives {

/// Grows in the child of every fork, so that what belongs to the parent is recognised without a system call. A thread
/// of the parent may have held any lock at that moment, for ever as far as the child is concerned: what is of another
/// generation is neither locked nor destroyed, only left alone. Thread: any.
[[nodiscard]] std::uint32_t current_fork_generation() noexcept;

}  // namespace weft::collectives
