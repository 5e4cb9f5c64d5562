#pragma once

#include <cstddef>
#include <cstdint>

#include "device/types.h"

namespace weft::device {

/// `destination[i] = left[i] op right[i]`, on CPU-accessible memory.
/// Shape:  `destination` may equal `left` or `right`; otherwise no overlap. Element-aligned is enough.
/// Numbers: docs/numerics.md; `left op right` and `right op left` have the same bits, whatever the alignment,
///         the length and the instruction set.
/// Thread: any. Cost: one pass.
using ReduceFunction = void (*)(std::byte* destination, const std::byte* left, const std::byte* right,
                                std::size_t count) noexcept;

/// How results reach memory. Non-temporal stores save reading the destination (4 streams become 3) but push it
/// out of the caches, so they win on ranges above the cache size and lose below.
enum class Stores : std::uint8_t {
  automatic,  ///< By the size of this call: see streaming_threshold_bytes.
  cached,     ///< Ordinary stores.
  streaming,  ///< Non-temporal stores; for slices of a range that is large as a whole.
};

/// The best kernel for this processor; never null. avg gives sum's. In place, stores are always ordinary ones.
/// Thread: any. Cost: a table look-up.
ReduceFunction reduce_function(DataType type, ReduceOp op, Stores stores = Stores::automatic) noexcept;

/// memcpy for large ranges: non-temporal at copy_streaming_threshold_bytes and above, plain memcpy below.
/// Shape:  no overlap unless the ranges are equal.
void copy_bytes(std::byte* destination, const std::byte* source, std::size_t size_bytes,
                Stores stores = Stores::automatic) noexcept;

/// See Device::finish_average. `divisor` > 0.
void divide(std::byte* values, std::size_t count, DataType type, std::uint32_t divisor) noexcept;

/// Names the instruction set in use: "AVX2", "AVX3", "SSE4", ... Thread: any.
const char* kernel_target() noexcept;

/// From which destination size on Stores::automatic streams, in a reduction and in a copy. Thread: any.
std::size_t streaming_threshold_bytes() noexcept;
std::size_t copy_streaming_threshold_bytes() noexcept;

}  // namespace weft::device
