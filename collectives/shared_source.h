#pragma once

#include "collectives/engine/arena.h"

namespace weft::collectives {

/// The memory that weft_memory_allocate gives: shared between the processes of a host. Thread: any.
engine::MemorySource& shared_source() noexcept;

}  // namespace weft::collectives
