#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "device/host/kernels.h"

/// Inside of device/host: what each family of types gives to the table in kernels.cc.
namespace weft::device::host {

using DivideFunction = void (*)(std::byte* values, std::size_t count, std::uint32_t divisor) noexcept;

/// The three ways to store, in the order of `Stores`.
using Variants = std::array<ReduceFunction, 3>;

/// All kernels of one type for one instruction set.
struct TypeKernels {
  Variants sum, prod, min, max;
  DivideFunction divide;
};

using CopyFunction = void (*)(std::byte* destination, const std::byte* source, std::size_t size_bytes) noexcept;

// For the instruction set that is in use now. Each lives in a file of its own: one compiles in a few seconds.
TypeKernels i8_kernels() noexcept;
TypeKernels u8_kernels() noexcept;
TypeKernels i32_kernels() noexcept;
TypeKernels u32_kernels() noexcept;
TypeKernels i64_kernels() noexcept;
TypeKernels u64_kernels() noexcept;
TypeKernels f16_kernels() noexcept;
TypeKernels bf16_kernels() noexcept;
TypeKernels f32_kernels() noexcept;
TypeKernels f64_kernels() noexcept;
CopyFunction streaming_copy() noexcept;

/// Read by every automatic kernel; set once before the first kernel is handed out.
extern std::size_t streaming_threshold;

}  // namespace weft::device::host
