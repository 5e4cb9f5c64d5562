#include "base/out_of_memory.h"

namespace weft {
namespace {

/// Made before main: when it is needed, there is no memory for it.
const Error kOutOfMemory{ErrorCode::limit_exceeded, "out of memory",
                         "Look at the memory limits of this process (ulimit -v, cgroup) and at what else it holds"};

}  // namespace

Error out_of_memory() noexcept { return kOutOfMemory; }

}  // namespace weft
