#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/host/float_kernels.cc"
#include <hwy/foreach_target.h>  // Compiles this file once per instruction set; must come first.

#include "device/host/floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::device::host::HWY_NAMESPACE {

TypeKernels f32_table() { return float_kernels<float>(); }
TypeKernels f64_table() { return float_kernels<double>(); }

}  // namespace weft::device::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::device::host {

HWY_EXPORT(f32_table);
TypeKernels f32_kernels() noexcept { return HWY_DYNAMIC_DISPATCH(f32_table)(); }
HWY_EXPORT(f64_table);
TypeKernels f64_kernels() noexcept { return HWY_DYNAMIC_DISPATCH(f64_table)(); }

}  // namespace weft::device::host
#endif
