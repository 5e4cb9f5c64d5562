#include "device/cuda/driver_api.h"

#include <dlfcn.h>

namespace weft::device::cuda {
namespace {

/// Fills `function` from the library; false if it is not there.
template <class F>
bool find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

Error DriverApi::error(DriverResult result, const std::string& doing) const {
  const char* text = nullptr;
  if (cuGetErrorString == nullptr || cuGetErrorString(result, &text) != kSuccess || text == nullptr) text = "unknown";
  const ErrorCode code = result == kOutOfMemory ? ErrorCode::limit_exceeded : ErrorCode::system;
  return Error{code, doing + ": CUDA driver error " + std::to_string(result) + ", " + text};
}

Result<DriverApi> load_driver(const char* library) noexcept {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();
    return Error{ErrorCode::unsupported, std::string("load the CUDA driver: ") + (why != nullptr ? why : library),
                 "Install the NVIDIA driver, or use host memory"};
  }
  DriverApi api;
  const char* missing = nullptr;
#define WEFT_FIND(name) \
  if (!find(handle, #name, api.name)) missing = #name
  WEFT_FIND(cuInit);
  WEFT_FIND(cuGetErrorString);
  WEFT_FIND(cuDeviceGetCount);
  WEFT_FIND(cuDeviceGet);
  WEFT_FIND(cuDeviceGetName);
  WEFT_FIND(cuDevicePrimaryCtxRetain);
  WEFT_FIND(cuDevicePrimaryCtxRelease_v2);
  WEFT_FIND(cuCtxPushCurrent_v2);
  WEFT_FIND(cuCtxPopCurrent_v2);
  WEFT_FIND(cuStreamCreate);
  WEFT_FIND(cuStreamDestroy_v2);
  WEFT_FIND(cuStreamSynchronize);
  WEFT_FIND(cuEventCreate);
  WEFT_FIND(cuEventDestroy_v2);
  WEFT_FIND(cuEventRecord);
  WEFT_FIND(cuEventQuery);
  WEFT_FIND(cuMemAlloc_v2);
  WEFT_FIND(cuMemFree_v2);
  WEFT_FIND(cuMemsetD8Async);
  WEFT_FIND(cuMemcpyAsync);
  WEFT_FIND(cuMemHostAlloc);
  WEFT_FIND(cuMemFreeHost);
  WEFT_FIND(cuMemHostRegister_v2);
  WEFT_FIND(cuMemHostUnregister);
  WEFT_FIND(cuPointerGetAttribute);
  WEFT_FIND(cuModuleLoadData);
  WEFT_FIND(cuModuleUnload);
  WEFT_FIND(cuModuleGetFunction);
  WEFT_FIND(cuLaunchKernel);
#undef WEFT_FIND
  if (missing != nullptr) {
    dlclose(handle);
    return Error{ErrorCode::unsupported, std::string("find ") + missing + " in " + library, "Update the NVIDIA driver"};
  }
  if (const DriverResult result = api.cuInit(0); result != kSuccess) {
    const Error cause = api.error(result, "initialise the CUDA driver");
    dlclose(handle);
    return Error{ErrorCode::unsupported, cause.doing(), "Check that nvidia-smi lists a GPU in this container"};
  }
  return api;
}

}  // namespace weft::device::cuda
