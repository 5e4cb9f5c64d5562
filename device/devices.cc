#include "device/devices.h"

#include <array>
#include <mutex>
#include <string>

namespace weft::device {
namespace {

// Slots never move: a look-up needs no lock and sees a device or null.
std::array<std::atomic<Device*>, kDevicesMax> slots;
std::mutex registering;

}  // namespace

namespace detail {

std::atomic<std::uint32_t> num_devices{0};

Device* find_device(const std::byte* memory) noexcept {
  std::uint32_t left = num_devices.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < kDevicesMax && left > 0; ++i) {
    Device* const device = slots[i].load(std::memory_order_acquire);
    if (device == nullptr) continue;
    if (device->owns(memory)) return device;
    --left;
  }
  return nullptr;
}

}  // namespace detail

Status register_device(Device& device) noexcept {
  const std::lock_guard lock(registering);
  std::atomic<Device*>* free_slot = nullptr;
  for (auto& slot : slots) {
    Device* const taken = slot.load(std::memory_order_relaxed);
    if (taken == &device) {
      return Error{ErrorCode::invalid_argument, "register device " + std::string(device.name()) + " a second time"};
    }
    if (taken == nullptr && free_slot == nullptr) free_slot = &slot;
  }
  if (free_slot == nullptr) {
    return Error{ErrorCode::limit_exceeded, "register device " + std::string(device.name()) + ": " +
                                                std::to_string(kDevicesMax) + " are registered already"};
  }
  free_slot->store(&device, std::memory_order_release);
  detail::num_devices.fetch_add(1, std::memory_order_release);
  return {};
}

void unregister_device(Device& device) noexcept {
  const std::lock_guard lock(registering);
  for (auto& slot : slots) {
    if (slot.load(std::memory_order_relaxed) != &device) continue;
    slot.store(nullptr, std::memory_order_release);
    detail::num_devices.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace weft::device
