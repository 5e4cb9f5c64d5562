#include "tests/fakes/fake_cuda_driver.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "device/host/kernels.h"

namespace weft::fakes {
namespace {

using namespace device::cuda;  // NOLINT: this file is that interface.

constexpr DriverResult kInvalidValue = 1;
constexpr DriverResult kInvalidImage = 200;
constexpr DriverResult kInvalidContext = 201;
constexpr int kPollsPerPiece = 3;  ///< Queries of an event until the stream's next piece of work runs.

struct Fake {
  FakeCudaState state;
  std::map<DevicePointer, std::size_t> memory;
  std::deque<std::function<void()>> work;  ///< Of the one stream.
  std::uint64_t num_started = 0;
  std::uint64_t num_finished = 0;
  int polls = 0;
  std::map<std::uintptr_t, std::uint64_t> events;  ///< Event -> work that was started before it.
  std::uintptr_t next_event = 1;
  std::vector<std::string> functions;  ///< Handle - 1 -> name.
};
Fake fake;

void run_one() {
  fake.work.front()();
  fake.work.pop_front();
  ++fake.num_finished;
}
void start(std::function<void()> piece) {
  fake.work.push_back(std::move(piece));
  ++fake.num_started;
}
bool has_context() { return fake.state.context_depth > 0; }
template <class Handle>
Handle handle_of(std::uintptr_t number) {
  return reinterpret_cast<Handle>(number);
}

/// Runs "weft_<op>_<type>" as the GPU would.
void run_kernel(const std::string& name, void** parameters) {
  using device::DataType;
  const std::size_t split = name.find('_', 5);
  const std::string op = name.substr(5, split - 5);
  const DataType type = *device::parse_data_type(name.substr(split + 1));
  auto* const first = *static_cast<std::byte**>(parameters[0]);
  if (op == "divide") {
    const auto count = *static_cast<unsigned long long*>(parameters[1]);
    const auto divisor = *static_cast<unsigned*>(parameters[2]);
    start([=] { device::divide(first, count, type, divisor); });
    return;
  }
  const auto* const left = *static_cast<const std::byte**>(parameters[1]);
  const auto* const right = *static_cast<const std::byte**>(parameters[2]);
  const auto count = *static_cast<unsigned long long*>(parameters[3]);
  const auto function = device::reduce_function(type, *device::parse_reduce_op(op));
  start([=] { function(first, left, right, count); });
}

DriverResult pointer_attribute(void* value, int attribute, DevicePointer address) {
  auto next = fake.memory.upper_bound(address);
  if (next == fake.memory.begin()) return kInvalidValue;
  --next;
  if (address - next->first >= next->second) return kInvalidValue;
  if (attribute == kPointerMemoryType) *static_cast<unsigned*>(value) = kMemoryTypeDevice;
  if (attribute == kPointerIsManaged) *static_cast<unsigned char*>(value) = 0;
  if (attribute == kPointerDeviceOrdinal) *static_cast<int*>(value) = 0;
  return kSuccess;
}

void fill_contexts(DriverApi& api) {
  api.cuInit = [](unsigned) { return kSuccess; };
  api.cuGetErrorString = [](DriverResult, const char** text) {
    *text = "the fake driver says so";
    return kSuccess;
  };
  api.cuDeviceGetCount = [](int* count) {
    *count = fake.state.num_devices;
    return kSuccess;
  };
  api.cuDeviceGet = [](DeviceHandle* device, int ordinal) {
    *device = ordinal + 100;
    return kSuccess;
  };
  api.cuDeviceGetName = [](char* name, int size, DeviceHandle) {
    std::strncpy(name, "Fake GPU", static_cast<std::size_t>(size));
    return kSuccess;
  };
  api.cuDevicePrimaryCtxRetain = [](Context* context, DeviceHandle) {
    ++fake.state.num_contexts;
    *context = handle_of<Context>(7);
    return kSuccess;
  };
  api.cuDevicePrimaryCtxRelease_v2 = [](DeviceHandle device) {
    --fake.state.num_contexts;
    return device >= 100 ? kSuccess : kInvalidValue;
  };
  api.cuCtxPushCurrent_v2 = [](Context context) {
    if (context != handle_of<Context>(7)) return kInvalidContext;
    ++fake.state.context_depth;
    return kSuccess;
  };
  api.cuCtxPopCurrent_v2 = [](Context* context) {
    if (!has_context()) return kInvalidContext;
    --fake.state.context_depth;
    *context = handle_of<Context>(7);
    return kSuccess;
  };
}

void fill_streams(DriverApi& api) {
  api.cuStreamCreate = [](Stream* stream, unsigned) {
    if (!has_context()) return kInvalidContext;
    ++fake.state.num_streams;
    *stream = handle_of<Stream>(9);
    return kSuccess;
  };
  api.cuStreamDestroy_v2 = [](Stream) {
    --fake.state.num_streams;
    return kSuccess;
  };
  api.cuStreamSynchronize = [](Stream) {
    while (!fake.work.empty()) run_one();
    return kSuccess;
  };
  api.cuEventCreate = [](Event* event, unsigned) {
    if (!has_context()) return kInvalidContext;
    ++fake.state.num_events;
    *event = handle_of<Event>(fake.next_event++);
    return kSuccess;
  };
  api.cuEventDestroy_v2 = [](Event) {
    --fake.state.num_events;
    return kSuccess;
  };
  api.cuEventRecord = [](Event event, Stream) {
    if (!has_context()) return kInvalidContext;
    fake.events[reinterpret_cast<std::uintptr_t>(event)] = fake.num_started;
    return kSuccess;
  };
  api.cuEventQuery = [](Event event) {
    if (fake.state.broken_result != kSuccess) return fake.state.broken_result;
    if (!fake.work.empty() && ++fake.polls % kPollsPerPiece == 0) run_one();
    return fake.num_finished >= fake.events[reinterpret_cast<std::uintptr_t>(event)] ? kSuccess : kNotReady;
  };
}

void fill_memory(DriverApi& api) {
  api.cuMemAlloc_v2 = [](DevicePointer* address, std::size_t size) {
    if (!has_context()) return kInvalidContext;
    if (size > fake.state.memory_bytes) return kOutOfMemory;
    void* const block = std::aligned_alloc(256, (size + 255) / 256 * 256);
    std::memset(block, 0xEE, size);
    *address = reinterpret_cast<DevicePointer>(block);
    fake.memory[*address] = size;
    ++fake.state.num_allocations;
    return kSuccess;
  };
  api.cuMemFree_v2 = [](DevicePointer address) {
    if (!has_context()) return kInvalidContext;
    if (fake.memory.erase(address) == 0) return kInvalidValue;
    std::free(reinterpret_cast<void*>(address));
    --fake.state.num_allocations;
    return kSuccess;
  };
  api.cuMemsetD8Async = [](DevicePointer address, unsigned char value, std::size_t size, Stream) {
    if (!has_context()) return kInvalidContext;
    start([=] { std::memset(reinterpret_cast<void*>(address), value, size); });
    return kSuccess;
  };
  api.cuMemcpyAsync = [](DevicePointer destination, DevicePointer source, std::size_t size, Stream) {
    if (!has_context()) return kInvalidContext;
    start([=] { std::memcpy(reinterpret_cast<void*>(destination), reinterpret_cast<const void*>(source), size); });
    return kSuccess;
  };
  api.cuMemHostAlloc = [](void** block, std::size_t size, unsigned) {
    if (!has_context()) return kInvalidContext;
    *block = std::malloc(size);
    ++fake.state.num_pinned;
    return kSuccess;
  };
  api.cuMemFreeHost = [](void* block) {
    std::free(block);
    --fake.state.num_pinned;
    return kSuccess;
  };
  api.cuMemHostRegister_v2 = [](void*, std::size_t size, unsigned) {
    if (!has_context()) return kInvalidContext;
    if (size > fake.state.memory_bytes) return kOutOfMemory;
    ++fake.state.num_registered;
    return kSuccess;
  };
  api.cuMemHostUnregister = [](void*) {
    --fake.state.num_registered;
    return kSuccess;
  };
  api.cuPointerGetAttribute = &pointer_attribute;
}

void fill_kernels(DriverApi& api) {
  api.cuModuleLoadData = [](Module* module, const void*) {
    *module = handle_of<Module>(11);
    return fake.state.accepts_image ? kSuccess : kInvalidImage;
  };
  api.cuModuleUnload = [](Module) { return kSuccess; };
  api.cuModuleGetFunction = [](Function* function, Module, const char* name) {
    fake.functions.emplace_back(name);
    *function = handle_of<Function>(fake.functions.size());
    return kSuccess;
  };
  api.cuLaunchKernel = [](Function function, unsigned grid_x, unsigned, unsigned, unsigned block_x, unsigned, unsigned,
                          unsigned, Stream, void** parameters, void**) {
    if (!has_context()) return kInvalidContext;
    if (grid_x == 0 || block_x == 0) return kInvalidValue;
    ++fake.state.num_launches;
    run_kernel(fake.functions[reinterpret_cast<std::uintptr_t>(function) - 1], parameters);
    return kSuccess;
  };
}

}  // namespace

DriverApi make_fake_cuda_driver() {
  for (const auto& [address, size] : fake.memory) std::free(reinterpret_cast<void*>(address));
  fake = Fake{};
  DriverApi api;
  fill_contexts(api);
  fill_streams(api);
  fill_memory(api);
  fill_kernels(api);
  return api;
}

FakeCudaState& fake_cuda_state() { return fake.state; }

}  // namespace weft::fakes
