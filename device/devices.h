#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "device/device.h"

namespace weft::device {

/// More devices than any machine has; look-ups walk the registered ones.
inline constexpr std::size_t kDevicesMax = 32;

/// Makes the process look for memory of `device` (device_of). The caller keeps it alive until unregister_device.
/// Errors: limit_exceeded — kDevicesMax are registered; invalid_argument — this one is already.
/// Thread: any.
[[nodiscard]] Status register_device(Device& device) noexcept;

/// Thread: any, but no look-up runs that may still answer this device. Unknown devices are ignored.
void unregister_device(Device& device) noexcept;

namespace detail {
extern std::atomic<std::uint32_t> num_devices;
Device* find_device(const std::byte* memory) noexcept;
}  // namespace detail

/// The registered device that owns `memory`, or null where the CPU may touch it.
/// Thread: any. Cost: one load while no device is registered; else one owns() per registered device.
inline Device* owner_of(const std::byte* memory) noexcept {
  if (detail::num_devices.load(std::memory_order_acquire) == 0) [[likely]]
    return nullptr;
  return detail::find_device(memory);
}

/// The Device to ask for copies and reductions on `memory`: its owner, or host_device(). Thread and cost as owner_of.
inline Device& device_of(const std::byte* memory) noexcept {
  Device* const owner = owner_of(memory);
  return owner != nullptr ? *owner : host_device();
}

/// host or device: whether the CPU may touch `memory`. Thread and cost as owner_of.
inline MemoryKind kind_of(const std::byte* memory) noexcept {
  return owner_of(memory) == nullptr ? MemoryKind::host : MemoryKind::device;
}

}  // namespace weft::device
