// Operations on f32 and f64, which f16 and bf16 compute with as well; compiled once per instruction set.
//
// Every operation gives the same bits for (a, b) and (b, a), in a vector and alone, on every instruction set:
// a NaN result is always the positive quiet NaN without payload (the hardware would keep the first operand's
// payload, and the compiler may swap operands), and -0 < +0 for min and max (the hardware would give the second).
#if defined(WEFT_DEVICE_HOST_FLOATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_DEVICE_HOST_FLOATS_INL_H_
#undef WEFT_DEVICE_HOST_FLOATS_INL_H_
#else
#define WEFT_DEVICE_HOST_FLOATS_INL_H_
#endif

#include <limits>

#include "device/host/loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::device::host::HWY_NAMESPACE {

template <class D>
HWY_INLINE hn::Vec<D> quiet_nan(D d) {
  return hn::Set(d, std::numeric_limits<hn::TFromD<D>>::quiet_NaN());
}

struct FloatSum {
  template <class D, class V>
  HWY_INLINE V many(D d, V a, V b) const {
    const V sum = hn::Add(a, b);
    return hn::IfThenElse(hn::IsNaN(sum), quiet_nan(d), sum);
  }
};

struct FloatProd {
  template <class D, class V>
  HWY_INLINE V many(D d, V a, V b) const {
    const V product = hn::Mul(a, b);
    return hn::IfThenElse(hn::IsNaN(product), quiet_nan(d), product);
  }
};

/// Both orders differ only where a and b are zeros of either sign: Or keeps the minus, And drops it.
struct FloatMin {
  template <class D, class V>
  HWY_INLINE V many(D d, V a, V b) const {
    const V least = hn::Or(hn::Min(a, b), hn::Min(b, a));
    return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), quiet_nan(d), least);
  }
};

struct FloatMax {
  template <class D, class V>
  HWY_INLINE V many(D d, V a, V b) const {
    const V greatest = hn::And(hn::Max(a, b), hn::Max(b, a));
    return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), quiet_nan(d), greatest);
  }
};

/// Divides the first operand, the second being ignored: so that finish_average shares the loops.
template <class T>
struct FloatDivide {
  T divisor;
  template <class D, class V>
  HWY_INLINE V many(D d, V a, V) const {
    const V quotient = hn::Div(a, hn::Set(d, divisor));
    return hn::IfThenElse(hn::IsNaN(quotient), quiet_nan(d), quotient);
  }
};

/// Adds the scalar form to an operation: the vector form on one lane, so that both agree.
template <class T, class Op>
struct PlainFloat : Op {
  HWY_INLINE T one(T a, T b) const {
    const hn::CappedTag<T, 1> d;
    return hn::GetLane(this->many(d, hn::Set(d, a), hn::Set(d, b)));
  }
};

template <class T>
void divide_floats(std::byte* values, std::size_t count, std::uint32_t divisor) noexcept {
  T* const begin = reinterpret_cast<T*>(values);
  reduce_cached(begin, begin, begin, count, PlainFloat<T, FloatDivide<T>>{{static_cast<T>(divisor)}});
}

template <class T>
TypeKernels float_kernels() noexcept {
  return {Kernel<T, PlainFloat<T, FloatSum>>::variants(), Kernel<T, PlainFloat<T, FloatProd>>::variants(),
          Kernel<T, PlainFloat<T, FloatMin>>::variants(), Kernel<T, PlainFloat<T, FloatMax>>::variants(),
          &divide_floats<T>};
}

/// A 16-bit float kept in std::uint16_t: both operands become f32, and the result is rounded to nearest even, once.
/// `Format` says how: see bf16_kernels.cc and f16_kernels.cc.
template <class Format, class Op>
struct NarrowFloat : Op {
  template <class D, class V>
  HWY_INLINE V many(D d, V a, V b) const {
#if HWY_TARGET == HWY_SCALAR
    (void)d;
    (void)b;
    return a;  // Never called: this target has only one().
#else
    return Format::each(d, a, b, static_cast<const Op&>(*this));
#endif
  }
  HWY_INLINE std::uint16_t one(std::uint16_t a, std::uint16_t b) const {
    const hn::CappedTag<float, 1> df;
    return Format::store(df, static_cast<const Op&>(*this).many(df, Format::load(df, a), Format::load(df, b)));
  }
};

/// One value of a format that has widen() and narrow(), by way of one lane.
template <class Format>
struct OneValue {
  template <class DF>
  static HWY_INLINE hn::Vec<DF> load(DF, std::uint16_t bits) {
    const hn::Rebind<std::uint32_t, DF> d32;
    return Format::widen(d32, hn::Set(d32, bits));
  }
  template <class DF, class V>
  static HWY_INLINE std::uint16_t store(DF, V value) {
    return static_cast<std::uint16_t>(hn::GetLane(Format::narrow(hn::Rebind<std::uint32_t, DF>(), value)));
  }
};

template <class Format>
void divide_narrow(std::byte* values, std::size_t count, std::uint32_t divisor) noexcept {
  auto* const begin = reinterpret_cast<std::uint16_t*>(values);
  reduce_cached(begin, begin, begin, count, NarrowFloat<Format, FloatDivide<float>>{{static_cast<float>(divisor)}});
}

template <class Format>
TypeKernels narrow_kernels() noexcept {
  using T = std::uint16_t;
  return {Kernel<T, NarrowFloat<Format, FloatSum>>::variants(), Kernel<T, NarrowFloat<Format, FloatProd>>::variants(),
          Kernel<T, NarrowFloat<Format, FloatMin>>::variants(), Kernel<T, NarrowFloat<Format, FloatMax>>::variants(),
          &divide_narrow<Format>};
}

}  // namespace weft::device::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
