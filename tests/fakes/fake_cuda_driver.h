#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "device/cuda/driver_api.h"

namespace weft::fakes {

/// What the fake driver knows now, and how it shall behave.
struct FakeCudaState {
  int num_devices = 1;
  bool accepts_image = false;                    ///< cuModuleLoadData; kernels then run on the CPU.
  std::size_t memory_bytes = 1 << 24;            ///< cuMemAlloc refuses beyond.
  device::cuda::DriverResult broken_result = 0;  ///< If not 0, cuEventQuery answers it: the GPU died.

  std::size_t num_allocations = 0;
  std::size_t num_pinned = 0;
  std::size_t num_registered = 0;
  std::size_t num_events = 0;
  std::size_t num_streams = 0;
  std::size_t num_contexts = 0;  ///< Retained primary contexts.
  std::size_t num_launches = 0;
  std::size_t context_depth = 0;
};

/// A CUDA driver in host memory: streams run their work when an event on them is queried often enough or at
/// synchronisation, and calls without a current context fail as the real ones do.
/// Forgets everything from before. Thread: one test at a time.
device::cuda::DriverApi make_fake_cuda_driver();
FakeCudaState& fake_cuda_state();

}  // namespace weft::fakes
