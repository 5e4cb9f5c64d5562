#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "device/memory.h"
#include "device/types.h"

namespace weft::device {

/// One piece of asynchronous work of a Device.
enum class Ticket : std::uint64_t {
  done = 0,  ///< The work finished before the call returned.
};

/// Copies and reductions on one kind of memory. Engine and transports never touch device memory with the
/// CPU; they ask here. Work of one Device may finish out of order; whoever needs an order waits for tickets.
///
/// Each pointer is either CPU-accessible host memory or memory of this device; a Device accepts any mix.
class Device {
 public:
  virtual ~Device() = default;

  [[nodiscard]] virtual std::string_view name() const noexcept = 0;

  /// Starts `destination[0, size) = source[0, size)`; ranges do not overlap unless they are equal.
  /// Memory: both ranges untouched by others until the ticket is done.
  /// Thread: loop.
  [[nodiscard]] virtual Ticket copy(std::byte* destination, const std::byte* source,
                                    std::size_t size_bytes) noexcept = 0;

  /// Starts `destination[i] = left[i] op right[i]` over `count` elements. avg adds, like sum (see finish_average).
  /// Shape:  `destination` may equal `left` or `right`; otherwise no overlap. Pointers are aligned to the element.
  /// Memory, Thread: as copy.
  [[nodiscard]] virtual Ticket reduce(std::byte* destination, const std::byte* left, const std::byte* right,
                                      std::size_t count, DataType type, ReduceOp op) noexcept = 0;

  /// Starts `values[i] = values[i] / divisor` for an average: floats divide in fp32 (f64 in fp64) and round once;
  /// integers divide truncating toward zero.
  [[nodiscard]] virtual Ticket finish_average(std::byte* values, std::size_t count, DataType type,
                                              std::uint32_t divisor) noexcept = 0;

  /// True once the work behind `ticket` has finished and its bytes are visible; never blocks. Thread: loop.
  [[nodiscard]] virtual bool is_done(Ticket ticket) noexcept = 0;

  /// Memory of this device, aligned to 256 bytes, zeroed. Errors: limit_exceeded, unsupported. Thread: blocking.
  [[nodiscard]] virtual Result<std::byte*> allocate(std::size_t size_bytes) noexcept = 0;
  virtual void release(std::byte* memory) noexcept = 0;
  /// True if `memory` lies in memory of this device that the CPU must not touch.
  [[nodiscard]] virtual bool owns(const std::byte* memory) const noexcept = 0;
};

/// The CPU: every call finishes at once (Ticket::done). SIMD by run-time dispatch (Highway).
/// Thread: any; one instance serves the process.
Device& host_device() noexcept;

}  // namespace weft::device
