#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

/// The seam to the CUDA driver: the few calls that Weft uses, declared here so that building needs no toolkit, and
/// found in libcuda.so.1 at run time. Tests put a fake behind it.
/// Source: CUDA Driver API reference; the _v2 names are what cuda.h maps the plain ones to.
namespace weft::device::cuda {

using DriverResult = int;
inline constexpr DriverResult kSuccess = 0;
inline constexpr DriverResult kOutOfMemory = 2;
inline constexpr DriverResult kNotReady = 600;

using DeviceHandle = int;
using DevicePointer = unsigned long long;
using Context = struct CUctx_st*;
using Stream = struct CUstream_st*;
using Event = struct CUevent_st*;
using Module = struct CUmod_st*;
using Function = struct CUfunc_st*;

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr int kPointerMemoryType = 2;
inline constexpr int kPointerIsManaged = 8;
inline constexpr int kPointerDeviceOrdinal = 9;
inline constexpr unsigned kMemoryTypeDevice = 2;

struct DriverApi {
  DriverResult (*cuInit)(unsigned flags) = nullptr;
  DriverResult (*cuGetErrorString)(DriverResult result, const char** text) = nullptr;
  DriverResult (*cuDeviceGetCount)(int* count) = nullptr;
  DriverResult (*cuDeviceGet)(DeviceHandle* device, int ordinal) = nullptr;
  DriverResult (*cuDeviceGetName)(char* name, int size, DeviceHandle device) = nullptr;
  DriverResult (*cuDevicePrimaryCtxRetain)(Context* context, DeviceHandle device) = nullptr;
  DriverResult (*cuDevicePrimaryCtxRelease_v2)(DeviceHandle device) = nullptr;
  DriverResult (*cuCtxPushCurrent_v2)(Context context) = nullptr;
  DriverResult (*cuCtxPopCurrent_v2)(Context* context) = nullptr;
  DriverResult (*cuStreamCreate)(Stream* stream, unsigned flags) = nullptr;
  DriverResult (*cuStreamDestroy_v2)(Stream stream) = nullptr;
  DriverResult (*cuStreamSynchronize)(Stream stream) = nullptr;
  DriverResult (*cuEventCreate)(Event* event, unsigned flags) = nullptr;
  DriverResult (*cuEventDestroy_v2)(Event event) = nullptr;
  DriverResult (*cuEventRecord)(Event event, Stream stream) = nullptr;
  DriverResult (*cuEventQuery)(Event event) = nullptr;
  DriverResult (*cuMemAlloc_v2)(DevicePointer* memory, std::size_t size_bytes) = nullptr;
  DriverResult (*cuMemFree_v2)(DevicePointer memory) = nullptr;
  DriverResult (*cuMemsetD8Async)(DevicePointer memory, unsigned char value, std::size_t size_bytes,
                                  Stream stream) = nullptr;
  DriverResult (*cuMemcpyAsync)(DevicePointer destination, DevicePointer source, std::size_t size_bytes,
                                Stream stream) = nullptr;
  DriverResult (*cuMemHostAlloc)(void** memory, std::size_t size_bytes, unsigned flags) = nullptr;
  DriverResult (*cuMemFreeHost)(void* memory) = nullptr;
  DriverResult (*cuMemHostRegister_v2)(void* memory, std::size_t size_bytes, unsigned flags) = nullptr;
  DriverResult (*cuMemHostUnregister)(void* memory) = nullptr;
  DriverResult (*cuPointerGetAttribute)(void* value, int attribute, DevicePointer memory) = nullptr;
  DriverResult (*cuModuleLoadData)(Module* module, const void* image) = nullptr;
  DriverResult (*cuModuleUnload)(Module module) = nullptr;
  DriverResult (*cuModuleGetFunction)(Function* function, Module module, const char* name) = nullptr;
  DriverResult (*cuLaunchKernel)(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                 unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream,
                                 void** parameters, void** extra) = nullptr;

  /// "`doing`: the driver's text for `result`".
  [[nodiscard]] Error error(DriverResult result, const std::string& doing) const;
};

/// Loads the driver and initialises it; it stays loaded. Thread: blocking.
/// Errors: unsupported — no such library, a function is missing in it, or it finds no usable GPU.
Result<DriverApi> load_driver(const char* library = "libcuda.so.1") noexcept;

}  // namespace weft::device::cuda
