#pragma once

#include <array>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/cuda/driver_api.h"
#include "device/device.h"

namespace weft::device::cuda {

/// The reduction kernels as a fatbin; empty where Weft was built without nvcc. Made by cmake/cuda.cmake.
std::span<const std::byte> kernel_image() noexcept;

/// One GPU: copies and reductions in order on one stream of its primary context; a ticket is an event on it.
///
/// Where kernels are missing (built without nvcc, or the driver is older than they need), and where an operand is host
/// memory, a reduction goes through pinned host memory and has finished when the call returns: right, but slow; and
/// copies of host memory that is not pinned (register_host) may block as well.
/// Thread: loop, but owns: any.
class CudaDevice final : public Device {
 public:
  /// Errors: not_found — there is no GPU with this ordinal; system, limit_exceeded — the driver refuses.
  static Result<std::unique_ptr<CudaDevice>> create(const DriverApi& driver, int ordinal,
                                                    std::span<const std::byte> image = kernel_image());
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  /// "cuda:0 (NVIDIA ...)".
  std::string_view name() const noexcept override { return name_; }
  Ticket copy(std::byte* destination, const std::byte* source, std::size_t size_bytes) noexcept override;
  Ticket reduce(std::byte* destination, const std::byte* left, const std::byte* right, std::size_t count, DataType type,
                ReduceOp op) noexcept override;
  Ticket finish_average(std::byte* values, std::size_t count, DataType type, std::uint32_t divisor) noexcept override;
  bool is_done(Ticket ticket) noexcept override;
  Result<std::byte*> allocate(std::size_t size_bytes) noexcept override;
  void release(std::byte* memory) noexcept override;
  bool owns(const std::byte* memory) const noexcept override;

  /// Pins host memory, so that copies of it are asynchronous and fast. Errors: limit_exceeded, system.
  Status register_host(std::byte* memory, std::size_t size_bytes) noexcept;
  void release_host(std::byte* memory) noexcept;

  /// True if reductions run on the GPU, when all operands are there.
  [[nodiscard]] bool has_kernels() const noexcept { return module_ != nullptr; }

 private:
  struct Pending {
    std::uint64_t ticket;
    Event event;
  };

  CudaDevice(const DriverApi& driver, int ordinal) : driver_(driver), ordinal_(ordinal) {}
  Status open(std::span<const std::byte> image) noexcept;
  void load_kernels(std::span<const std::byte> image) noexcept;
  Ticket record() noexcept;
  Ticket launch(Function kernel, void** parameters, std::size_t count) noexcept;
  /// Calls `work(first, second, count)` on pieces of `left` and `right` in pinned memory, and copies what it leaves in
  /// `first` to `destination`.
  template <class Work>
  Ticket through_host(std::byte* destination, const std::byte* left, const std::byte* right, std::size_t count,
                      std::size_t element_bytes, Work work) noexcept;
  /// The Device contract has no way to report that a GPU died: says so and aborts.
  void must(DriverResult result, const char* doing) const noexcept;

  DriverApi driver_;
  int ordinal_;
  std::string name_;
  DeviceHandle device_ = -1;
  Context context_ = nullptr;
  Stream stream_ = nullptr;
  Module module_ = nullptr;
  std::byte* pinned_ = nullptr;  ///< Two pieces for through_host.
  std::array<std::array<Function, 4>, kDataTypes> reduce_{};
  std::array<Function, kDataTypes> divide_{};
  std::deque<Pending> pending_;  ///< In stream order, so the front finishes first.
  std::vector<Event> free_events_;
  std::uint64_t last_ticket_ = 0;
  std::uint64_t finished_ticket_ = 0;
};

/// The process's device for GPU `ordinal`: created and registered (device/devices.h) by the first call, kept for ever.
/// Thread: blocking. Errors: unsupported — no driver; as create.
Result<CudaDevice*> use_cuda_device(int ordinal);

}  // namespace weft::device::cuda
