#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/host/integer32_kernels.cc"
#include <hwy/foreach_target.h>  // Compiles this file once per instruction set; must come first.

#include "device/host/integers-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::device::host::HWY_NAMESPACE {

TypeKernels i32_table() { return integer_kernels<std::int32_t>(); }
TypeKernels u32_table() { return integer_kernels<std::uint32_t>(); }

}  // namespace weft::device::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::device::host {

HWY_EXPORT(i32_table);
TypeKernels i32_kernels() noexcept { return HWY_DYNAMIC_DISPATCH(i32_table)(); }
HWY_EXPORT(u32_table);
TypeKernels u32_kernels() noexcept { return HWY_DYNAMIC_DISPATCH(u32_table)(); }

}  // namespace weft::device::host
#endif
