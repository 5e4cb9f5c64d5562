#include "device/cuda/cuda_device.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/check.h"
#include "base/log.h"
#include "device/devices.h"
#include "device/host/kernels.h"

namespace weft::device::cuda {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;  ///< Of a reduction through the host.
constexpr unsigned kBlockThreads = 256;
constexpr std::size_t kBlocksMax = 1024;  ///< The kernels stride over what is left.

DevicePointer pointer(const std::byte* memory) { return reinterpret_cast<DevicePointer>(memory); }

/// The driver works on the calling thread's current context, which belongs to the application.
class CurrentContext {
 public:
  CurrentContext(const DriverApi& driver, Context context) : driver_(driver) {
    pushed_ = driver_.cuCtxPushCurrent_v2(context) == kSuccess;
  }
  ~CurrentContext() {
    Context popped = nullptr;
    if (pushed_) (void)driver_.cuCtxPopCurrent_v2(&popped);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const DriverApi& driver_;
  bool pushed_;
};

}  // namespace

Result<std::unique_ptr<CudaDevice>> CudaDevice::create(const DriverApi& driver, int ordinal,
                                                       std::span<const std::byte> image) {
  std::unique_ptr<CudaDevice> device(new CudaDevice(driver, ordinal));
  WEFT_TRY(device->open(image));
  return device;
}

Status CudaDevice::open(std::span<const std::byte> image) noexcept {
  int num_devices = 0;
  if (const auto result = driver_.cuDeviceGetCount(&num_devices); result != kSuccess) {
    return driver_.error(result, "count GPUs");
  }
  if (ordinal_ < 0 || ordinal_ >= num_devices) {
    return Error{ErrorCode::not_found, "use GPU " + std::to_string(ordinal_) + " of " + std::to_string(num_devices),
                 "CUDA_VISIBLE_DEVICES decides which GPUs a process sees"};
  }
  name_ = "cuda:" + std::to_string(ordinal_);
  if (const auto result = driver_.cuDeviceGet(&device_, ordinal_); result != kSuccess) {
    return driver_.error(result, "open " + name_);
  }
  char model[128] = {};
  if (driver_.cuDeviceGetName(model, sizeof(model) - 1, device_) == kSuccess) name_ += std::string(" (") + model + ")";
  if (const auto result = driver_.cuDevicePrimaryCtxRetain(&context_, device_); result != kSuccess) {
    context_ = nullptr;
    return driver_.error(result, "retain the primary context of " + name_);
  }
  const CurrentContext current(driver_, context_);
  if (const auto result = driver_.cuStreamCreate(&stream_, kStreamNonBlocking); result != kSuccess) {
    return driver_.error(result, "create a stream on " + name_);
  }
  void* pinned = nullptr;
  if (const auto result = driver_.cuMemHostAlloc(&pinned, 2 * kPieceBytes, 0); result != kSuccess) {
    return driver_.error(result, "allocate pinned memory for " + name_);
  }
  pinned_ = static_cast<std::byte*>(pinned);
  load_kernels(image);
  return {};
}

void CudaDevice::load_kernels(std::span<const std::byte> image) noexcept {
  if (image.empty()) return;
  if (const auto result = driver_.cuModuleLoadData(&module_, image.data()); result != kSuccess) {
    module_ = nullptr;
    log::warning("{}; reductions go through the host", driver_.error(result, "load kernels on " + name_).message());
    return;
  }
  const auto find = [&](Function& function, const std::string& kernel) {
    must(driver_.cuModuleGetFunction(&function, module_, kernel.c_str()), "find a kernel in Weft's own image");
  };
  for (std::size_t i = 0; i < kDataTypes; ++i) {
    const std::string type(name_of(static_cast<DataType>(i)));
    for (std::size_t op = 0; op < 4; ++op) {
      find(reduce_[i][op], "weft_" + std::string(name_of(static_cast<ReduceOp>(op))) + "_" + type);
    }
    find(divide_[i], "weft_divide_" + type);
  }
}

CudaDevice::~CudaDevice() {
  if (context_ == nullptr) return;
  {
    const CurrentContext current(driver_, context_);
    if (stream_ != nullptr) (void)driver_.cuStreamSynchronize(stream_);
    for (const Pending& pending : pending_) (void)driver_.cuEventDestroy_v2(pending.event);
    for (Event event : free_events_) (void)driver_.cuEventDestroy_v2(event);
    if (module_ != nullptr) (void)driver_.cuModuleUnload(module_);
    if (pinned_ != nullptr) (void)driver_.cuMemFreeHost(pinned_);
    if (stream_ != nullptr) (void)driver_.cuStreamDestroy_v2(stream_);
  }
  (void)driver_.cuDevicePrimaryCtxRelease_v2(device_);
}

void CudaDevice::must(DriverResult result, const char* doing) const noexcept {
  if (result == kSuccess) [[likely]]
    return;
  log::error("{}", driver_.error(result, std::string(doing) + " on " + name_).message());
  WEFT_CHECK(result == kSuccess, "a GPU in use keeps working");
}

Ticket CudaDevice::record() noexcept {
  Event event = nullptr;
  if (free_events_.empty()) {
    must(driver_.cuEventCreate(&event, kEventDisableTiming), "create an event");
  } else {
    event = free_events_.back();
    free_events_.pop_back();
  }
  must(driver_.cuEventRecord(event, stream_), "record an event");
  pending_.push_back({++last_ticket_, event});
  return Ticket{last_ticket_};
}

bool CudaDevice::is_done(Ticket ticket) noexcept {
  const auto number = static_cast<std::uint64_t>(ticket);
  WEFT_DCHECK(number <= last_ticket_, "a ticket comes from this device");
  while (number > finished_ticket_) {
    const DriverResult result = driver_.cuEventQuery(pending_.front().event);
    if (result == kNotReady) return false;
    must(result, "finish work");
    finished_ticket_ = pending_.front().ticket;
    free_events_.push_back(pending_.front().event);
    pending_.pop_front();
  }
  return true;
}

Ticket CudaDevice::copy(std::byte* destination, const std::byte* source, std::size_t size_bytes) noexcept {
  if (size_bytes == 0 || destination == source) return Ticket::done;
  const CurrentContext current(driver_, context_);
  must(driver_.cuMemcpyAsync(pointer(destination), pointer(source), size_bytes, stream_), "copy");
  return record();
}

Ticket CudaDevice::launch(Function kernel, void** parameters, std::size_t count) noexcept {
  const CurrentContext current(driver_, context_);
  const auto blocks = static_cast<unsigned>(std::min((count + kBlockThreads - 1) / kBlockThreads, kBlocksMax));
  must(driver_.cuLaunchKernel(kernel, blocks, 1, 1, kBlockThreads, 1, 1, 0, stream_, parameters, nullptr), "reduce");
  return record();
}

template <class Work>
Ticket CudaDevice::through_host(std::byte* destination, const std::byte* left, const std::byte* right,
                                std::size_t count, std::size_t element_bytes, Work work) noexcept {
  const CurrentContext current(driver_, context_);
  const std::size_t piece = kPieceBytes / element_bytes;
  std::byte* const first = pinned_;
  std::byte* const second = pinned_ + kPieceBytes;
  for (std::size_t done = 0; done < count; done += piece) {
    const std::size_t now = std::min(piece, count - done);
    const std::size_t offset = done * element_bytes, size = now * element_bytes;
    must(driver_.cuMemcpyAsync(pointer(first), pointer(left + offset), size, stream_), "copy");
    if (right != nullptr) {
      must(driver_.cuMemcpyAsync(pointer(second), pointer(right + offset), size, stream_), "copy");
    }
    must(driver_.cuStreamSynchronize(stream_), "copy");
    work(first, second, now);
    must(driver_.cuMemcpyAsync(pointer(destination + offset), pointer(first), size, stream_), "copy");
    must(driver_.cuStreamSynchronize(stream_), "copy");
  }
  return Ticket::done;
}

Ticket CudaDevice::reduce(std::byte* destination, const std::byte* left, const std::byte* right, std::size_t count,
                          DataType type, ReduceOp op) noexcept {
  if (count == 0) return Ticket::done;
  if (has_kernels() && owns(destination) && owns(left) && owns(right)) {
    const std::size_t index = op == ReduceOp::avg ? 0 : static_cast<std::size_t>(op);
    unsigned long long elements = count;
    void* parameters[] = {&destination, &left, &right, &elements};
    return launch(reduce_[static_cast<std::size_t>(type)][index], parameters, count);
  }
  return through_host(destination, left, right, count, size_of(type),
                      [&](std::byte* first, const std::byte* second, std::size_t now) {
                        reduce_function(type, op)(first, first, second, now);
                      });
}

Ticket CudaDevice::finish_average(std::byte* values, std::size_t count, DataType type, std::uint32_t divisor) noexcept {
  WEFT_CHECK(divisor > 0, "an average is over at least one contribution");
  if (count == 0) return Ticket::done;
  if (has_kernels() && owns(values)) {
    unsigned long long elements = count;
    void* parameters[] = {&values, &elements, &divisor};
    return launch(divide_[static_cast<std::size_t>(type)], parameters, count);
  }
  return through_host(values, values, nullptr, count, size_of(type),
                      [&](std::byte* first, const std::byte*, std::size_t now) { divide(first, now, type, divisor); });
}

Result<std::byte*> CudaDevice::allocate(std::size_t size_bytes) noexcept {
  const CurrentContext current(driver_, context_);
  const std::string doing = "allocate " + std::to_string(size_bytes) + " bytes on " + name_;
  const std::size_t size = std::max(size_bytes, std::size_t{1});
  DevicePointer memory = 0;  // The driver aligns to 256 bytes at least.
  if (const auto result = driver_.cuMemAlloc_v2(&memory, size); result != kSuccess) return driver_.error(result, doing);
  DriverResult result = driver_.cuMemsetD8Async(memory, 0, size, stream_);
  if (result == kSuccess) result = driver_.cuStreamSynchronize(stream_);
  if (result != kSuccess) {
    (void)driver_.cuMemFree_v2(memory);
    return driver_.error(result, doing);
  }
  return reinterpret_cast<std::byte*>(memory);
}

void CudaDevice::release(std::byte* memory) noexcept {
  if (memory == nullptr) return;
  const CurrentContext current(driver_, context_);
  must(driver_.cuMemFree_v2(pointer(memory)), "release memory");
}

bool CudaDevice::owns(const std::byte* memory) const noexcept {
  // The driver fails for addresses that it does not know: ordinary host memory. Managed memory the CPU may touch.
  unsigned kind = 0;
  int ordinal = -1;
  unsigned char is_managed = 0;
  if (driver_.cuPointerGetAttribute(&kind, kPointerMemoryType, pointer(memory)) != kSuccess) return false;
  if (kind != kMemoryTypeDevice) return false;
  if (driver_.cuPointerGetAttribute(&is_managed, kPointerIsManaged, pointer(memory)) != kSuccess) return false;
  if (driver_.cuPointerGetAttribute(&ordinal, kPointerDeviceOrdinal, pointer(memory)) != kSuccess) return false;
  return is_managed == 0 && ordinal == ordinal_;
}

Status CudaDevice::register_host(std::byte* memory, std::size_t size_bytes) noexcept {
  const CurrentContext current(driver_, context_);
  if (const auto result = driver_.cuMemHostRegister_v2(memory, size_bytes, 0); result != kSuccess) {
    return driver_.error(result, "pin " + std::to_string(size_bytes) + " bytes for " + name_);
  }
  return {};
}

void CudaDevice::release_host(std::byte* memory) noexcept {
  const CurrentContext current(driver_, context_);
  must(driver_.cuMemHostUnregister(memory), "unpin memory");
}

Result<CudaDevice*> use_cuda_device(int ordinal) {
  static std::mutex mutex;
  // Never destroyed: at exit the driver may be gone already.
  static auto& devices = *new std::map<int, CudaDevice*>;
  const std::lock_guard lock(mutex);
  if (const auto found = devices.find(ordinal); found != devices.end()) return found->second;
  static const auto& driver = *new Result<DriverApi>(load_driver());
  if (!driver) return driver.error();
  WEFT_TRY_ASSIGN(std::unique_ptr<CudaDevice> device, CudaDevice::create(*driver, ordinal));
  WEFT_TRY(register_device(*device));
  return devices.emplace(ordinal, device.release()).first->second;
}

}  // namespace weft::device::cuda
