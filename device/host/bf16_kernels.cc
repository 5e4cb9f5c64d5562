#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/host/bf16_kernels.cc"
#include <hwy/foreach_target.h>  // Compiles this file once per instruction set; must come first.

#include "device/host/floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::device::host::HWY_NAMESPACE {

/// The upper half of an f32. Even and odd elements are computed apart: so no element changes its place in the vector.
struct Bf16 : OneValue<Bf16> {
  template <class D32>
  static HWY_INLINE hn::Vec<hn::Rebind<float, D32>> widen(D32, hn::Vec<D32> bits) {
    return hn::BitCast(hn::Rebind<float, D32>(), hn::ShiftLeft<16>(bits));
  }

  /// The f32 whose upper half is the rounded value; a NaN must be the quiet NaN, which cannot carry into infinity.
  template <class D32, class V>
  static HWY_INLINE hn::Vec<D32> rounded(D32 d, V value) {
    const auto bits = hn::BitCast(d, value);
    const auto is_odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1u));
    return hn::Add(bits, hn::Add(is_odd, hn::Set(d, 0x7FFFu)));
  }

  template <class D32, class V>
  static HWY_INLINE hn::Vec<D32> narrow(D32 d, V value) {
    return hn::ShiftRight<16>(rounded(d, value));
  }

#if HWY_TARGET != HWY_SCALAR
  template <class D, class V, class Op>
  static HWY_INLINE V each(D d, V a, V b, const Op& op) {
    const hn::Repartition<std::uint32_t, D> d32;
    const hn::Repartition<float, D> df;
    const auto upper = hn::Set(d32, 0xFFFF0000u);
    const auto a32 = hn::BitCast(d32, a), b32 = hn::BitCast(d32, b);
    const auto even = op.many(df, widen(d32, a32), widen(d32, b32));
    const auto odd = op.many(df, hn::BitCast(df, hn::And(a32, upper)), hn::BitCast(df, hn::And(b32, upper)));
    return hn::BitCast(d, hn::Or(narrow(d32, even), hn::And(rounded(d32, odd), upper)));
  }
#endif
};

TypeKernels bf16_table() { return narrow_kernels<Bf16>(); }

}  // namespace weft::device::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::device::host {

HWY_EXPORT(bf16_table);
TypeKernels bf16_kernels() noexcept { return HWY_DYNAMIC_DISPATCH(bf16_table)(); }

}  // namespace weft::device::host
#endif
