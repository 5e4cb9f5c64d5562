#include <cstdlib>
#include <cstring>
#include <string>

#include "device/device.h"
#include "device/host/kernels.h"

namespace weft::device {
namespace {

constexpr std::size_t kAlignmentBytes = 256;

class HostDevice final : public Device {
 public:
  std::string_view name() const noexcept override { return "host"; }

  Ticket copy(std::byte* destination, const std::byte* source, std::size_t size_bytes) noexcept override {
    copy_bytes(destination, source, size_bytes);
    return Ticket::done;
  }

  Ticket reduce(std::byte* destination, const std::byte* left, const std::byte* right, std::size_t count, DataType type,
                ReduceOp op) noexcept override {
    reduce_function(type, op)(destination, left, right, count);
    return Ticket::done;
  }

  Ticket finish_average(std::byte* values, std::size_t count, DataType type, std::uint32_t divisor) noexcept override {
    divide(values, count, type, divisor);
    return Ticket::done;
  }

  bool is_done(Ticket) noexcept override { return true; }

  Result<std::byte*> allocate(std::size_t size_bytes) noexcept override {
    const std::size_t rounded = (size_bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
    void* const memory =
        rounded < size_bytes ? nullptr : std::aligned_alloc(kAlignmentBytes, rounded == 0 ? kAlignmentBytes : rounded);
    if (memory == nullptr) {
      return Error{ErrorCode::limit_exceeded, "allocate " + std::to_string(size_bytes) + " bytes of host memory",
                   "Use smaller buffers or raise the memory limit"};
    }
    std::memset(memory, 0, rounded);
    return static_cast<std::byte*>(memory);
  }
  void release(std::byte* memory) noexcept override { std::free(memory); }

  /// No host memory is out of the CPU's reach.
  bool owns(const std::byte*) const noexcept override { return false; }
};

}  // namespace

Device& host_device() noexcept {
  static HostDevice device;
  return device;
}

}  // namespace weft::device
