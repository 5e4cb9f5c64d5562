#pragma once

#include <cstddef>
#include <cstdint>

#include "device/types.h"

namespace weft::device {

/// `destination[i] = left[i] op right[i]`, on CPU-accessible memory.
/// Shape:  `destination` may equal `left` or `right`; otherwise no overlap. Element-aligned is enough.
/// Thread: any. Cost: one pass; picks non-temporal stores by itself above the cache size where they win.
using ReduceFunction = void (*)(std::byte* destination, const std::byte* left, const std::byte* right,
                                std::size_t count) noexcept;

/// The best kernel for this processor; never null. avg gives sum's. Thread: any. Cost: a table look-up.
ReduceFunction reduce_function(DataType type, ReduceOp op) noexcept;

/// memcpy for large ranges: non-temporal above the last-level cache's share, plain memcpy below.
void copy_bytes(std::byte* destination, const std::byte* source, std::size_t size_bytes) noexcept;

/// See Device::finish_average.
void divide(std::byte* values, std::size_t count, DataType type, std::uint32_t divisor) noexcept;

/// Names the instruction set in use: "AVX2", "AVX3_ZEN4", "SSE4", ... Thread: any.
const char* kernel_target() noexcept;

}  // namespace weft::device
