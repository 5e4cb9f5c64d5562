#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/host/integer8_kernels.cc"
#include <hwy/foreach_target.h>  // Compiles this file once per instruction set; must come first.

#include "device/host/integers-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::device::host::HWY_NAMESPACE {

TypeKernels i8_table() { return integer_kernels<std::int8_t>(); }
TypeKernels u8_table() { return integer_kernels<std::uint8_t>(); }

}  // namespace weft::device::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::device::host {

HWY_EXPORT(i8_table);
TypeKernels i8_kernels() noexcept { return HWY_DYNAMIC_DISPATCH(i8_table)(); }
HWY_EXPORT(u8_table);
TypeKernels u8_kernels() noexcept { return HWY_DYNAMIC_DISPATCH(u8_table)(); }

}  // namespace weft::device::host
#endif
