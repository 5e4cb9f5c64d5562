#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/host/integer64_kernels.cc"
#include <hwy/foreach_target.h>  // Compiles this file once per instruction set; must come first.

#include "device/host/integers-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::device::host::HWY_NAMESPACE {

TypeKernels i64_table() { return integer_kernels<std::int64_t>(); }
TypeKernels u64_table() { return integer_kernels<std::uint64_t>(); }

}  // namespace weft::device::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::device::host {

HWY_EXPORT(i64_table);
TypeKernels i64_kernels() noexcept { return HWY_DYNAMIC_DISPATCH(i64_table)(); }
HWY_EXPORT(u64_table);
TypeKernels u64_kernels() noexcept { return HWY_DYNAMIC_DISPATCH(u64_table)(); }

}  // namespace weft::device::host
#endif
