#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/host/f16_kernels.cc"
#include <hwy/foreach_target.h>  // Compiles this file once per instruction set; must come first.

#include "device/host/floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::device::host::HWY_NAMESPACE {

/// IEEE binary16. Highway's own conversions are used only where they are the processor's (F16C, AVX-512): its
/// substitutes for older processors truncate and lose NaN.
struct F16 : OneValue<F16> {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  template <class D, class V, class Op>
  static HWY_INLINE V each(D d, V a, V b, const Op& op) {
    const hn::Half<D> dh;
    const hn::Rebind<::hwy::float16_t, hn::Half<D>> dh16;
    const hn::Rebind<float, hn::Half<D>> df;
    const auto lower = op.many(df, hn::PromoteTo(df, hn::BitCast(dh16, hn::LowerHalf(dh, a))),
                               hn::PromoteTo(df, hn::BitCast(dh16, hn::LowerHalf(dh, b))));
    const auto upper = op.many(df, hn::PromoteTo(df, hn::BitCast(dh16, hn::UpperHalf(dh, a))),
                               hn::PromoteTo(df, hn::BitCast(dh16, hn::UpperHalf(dh, b))));
    return hn::Combine(d, hn::BitCast(dh, hn::DemoteTo(dh16, upper)), hn::BitCast(dh, hn::DemoteTo(dh16, lower)));
  }

  /// One value, converted by the processor; hides those of OneValue.
  template <class DF>
  static HWY_INLINE hn::Vec<DF> load(DF df, std::uint16_t bits) {
    return hn::PromoteTo(
        df, hn::BitCast(hn::Rebind<::hwy::float16_t, DF>(), hn::Set(hn::Rebind<std::uint16_t, DF>(), bits)));
  }
  template <class DF, class V>
  static HWY_INLINE std::uint16_t store(DF, V value) {
    const auto half = hn::DemoteTo(hn::Rebind<::hwy::float16_t, DF>(), value);
    return hn::GetLane(hn::BitCast(hn::Rebind<std::uint16_t, DF>(), half));
  }
#else
  /// From bits in the lower half of each lane. A subnormal is an integer times 2^-24.
  template <class D32>
  static HWY_INLINE hn::Vec<hn::Rebind<float, D32>> widen(D32 d, hn::Vec<D32> bits) {
    const hn::Rebind<float, D32> df;
    const hn::Rebind<std::int32_t, D32> di;
    const auto magnitude = hn::And(bits, hn::Set(d, 0x7FFFu));
    const auto sign = hn::ShiftLeft<16>(hn::Xor(bits, magnitude));
    const auto shifted = hn::ShiftLeft<13>(magnitude);
    const auto normal = hn::Add(shifted, hn::Set(d, (127u - 15u) << 23));
    const auto special = hn::Or(shifted, hn::Set(d, 0x7F800000u));
    const auto tiny =
        hn::BitCast(d, hn::Mul(hn::ConvertTo(df, hn::BitCast(di, magnitude)), hn::Set(df, 1.0f / (1 << 24))));
    // Signed comparisons: all values are below 2^31, and every instruction set has these.
    const auto is_special = hn::Gt(hn::BitCast(di, magnitude), hn::Set(di, 0x7BFF));
    const auto is_tiny = hn::Gt(hn::Set(di, 0x0400), hn::BitCast(di, magnitude));
    const auto large = hn::IfThenElse(hn::RebindMask(d, is_special), special, normal);
    return hn::BitCast(df, hn::Or(sign, hn::IfThenElse(hn::RebindMask(d, is_tiny), tiny, large)));
  }

  /// To bits in the lower half of each lane, to nearest even.
  template <class D32, class V>
  static HWY_INLINE hn::Vec<D32> narrow(D32 d, V value) {
    const hn::Rebind<float, D32> df;
    const hn::Rebind<std::int32_t, D32> di;
    const auto bits = hn::BitCast(d, value);
    const auto magnitude = hn::And(bits, hn::Set(d, 0x7FFFFFFFu));
    const auto sign = hn::ShiftRight<16>(hn::Xor(bits, magnitude));
    const auto is_odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d, 1u));
    const auto rebiased = hn::Sub(magnitude, hn::Set(d, (127u - 15u) << 23));
    const auto normal = hn::ShiftRight<13>(hn::Add(rebiased, hn::Add(is_odd, hn::Set(d, 0xFFFu))));
    // 0.5 has an ulp of 2^-24, that of binary16's subnormals: the addition rounds, and leaves the integer below.
    const auto half = hn::Set(df, 0.5f);
    const auto tiny = hn::Sub(hn::BitCast(d, hn::Add(hn::BitCast(df, magnitude), half)), hn::BitCast(d, half));
    const auto signed_magnitude = hn::BitCast(di, magnitude);
    const auto is_tiny = hn::RebindMask(d, hn::Gt(hn::Set(di, 0x38800000), signed_magnitude));   // Below 2^-14.
    const auto is_large = hn::RebindMask(d, hn::Gt(signed_magnitude, hn::Set(di, 0x477FEFFF)));  // 65520 and above.
    const auto is_nan = hn::RebindMask(d, hn::Gt(signed_magnitude, hn::Set(di, 0x7F800000)));
    const auto finite = hn::IfThenElse(is_tiny, tiny, normal);
    const auto special = hn::IfThenElse(is_nan, hn::Set(d, 0x7E00u), hn::Set(d, 0x7C00u));
    return hn::Or(sign, hn::IfThenElse(is_large, special, finite));
  }

#if HWY_TARGET != HWY_SCALAR
  template <class D, class V, class Op>
  static HWY_NOINLINE V each(  // Old processors only: not worth the time to compile it inline.
      D d, V a, V b, const Op& op) {
    const hn::Repartition<std::uint32_t, D> d32;
    const hn::Repartition<float, D> df;
    const auto lower = hn::Set(d32, 0xFFFFu);
    const auto a32 = hn::BitCast(d32, a), b32 = hn::BitCast(d32, b);
    const auto even = op.many(df, widen(d32, hn::And(a32, lower)), widen(d32, hn::And(b32, lower)));
    const auto odd = op.many(df, widen(d32, hn::ShiftRight<16>(a32)), widen(d32, hn::ShiftRight<16>(b32)));
    return hn::BitCast(d, hn::Or(narrow(d32, even), hn::ShiftLeft<16>(narrow(d32, odd))));
  }
#endif
#endif
};

TypeKernels f16_table() { return narrow_kernels<F16>(); }

}  // namespace weft::device::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::device::host {

HWY_EXPORT(f16_table);
TypeKernels f16_kernels() noexcept { return HWY_DYNAMIC_DISPATCH(f16_table)(); }

}  // namespace weft::device::host
#endif
