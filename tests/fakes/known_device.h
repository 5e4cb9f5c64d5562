#pragma once

#include "base/check.h"
#include "device/devices.h"

namespace weft::fakes {

/// The process knows `device` (device::owner_of) as long as this lives. Destroyed before `device`.
class KnownDevice {
 public:
  explicit KnownDevice(device::Device& device) : device_(device) {
    WEFT_CHECK(device::register_device(device), "a test makes few devices known, each once");
  }
  ~KnownDevice() { device::unregister_device(device_); }
  KnownDevice(const KnownDevice&) = delete;
  KnownDevice& operator=(const KnownDevice&) = delete;

 private:
  device::Device& device_;
};

}  // namespace weft::fakes
