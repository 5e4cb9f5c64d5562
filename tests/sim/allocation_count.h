#pragma once

#include <cstdint>

namespace weft::test {

/// How often this executable has called operator new. Thread: any.
std::uint64_t num_allocations() noexcept;

}  // namespace weft::test
