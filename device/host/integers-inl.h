// Integer operations, which wrap; compiled once per instruction set.
#if defined(WEFT_DEVICE_HOST_INTEGERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_DEVICE_HOST_INTEGERS_INL_H_
#undef WEFT_DEVICE_HOST_INTEGERS_INL_H_
#else
#define WEFT_DEVICE_HOST_INTEGERS_INL_H_
#endif

#include <type_traits>

#include "device/host/loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::device::host::HWY_NAMESPACE {

/// Two's complement: sum and prod of signed types run on the unsigned type of the same size, which has no overflow.
template <class T>
struct IntegerSum {
  static_assert(std::is_unsigned_v<T>);
  template <class D, class V>
  HWY_INLINE V many(D, V a, V b) const {
    return hn::Add(a, b);
  }
  HWY_INLINE T one(T a, T b) const { return static_cast<T>(a + b); }
};

template <class T>
struct IntegerProd {
  static_assert(std::is_unsigned_v<T>);
  template <class D, class V>
  HWY_INLINE V many(D d, V a, V b) const {
#if HWY_TARGET == HWY_SCALAR
    (void)d;
    (void)b;
    return a;  // Never called: this target has only one().
#else
    if constexpr (sizeof(T) == 1) {
      // The low half of a product depends only on the low halves of its factors.
      const hn::Repartition<std::uint16_t, D> d16;
      const auto a16 = hn::BitCast(d16, a), b16 = hn::BitCast(d16, b);
      const auto even = hn::And(hn::Mul(a16, b16), hn::Set(d16, 0xFF));
      const auto odd = hn::ShiftLeft<8>(hn::Mul(hn::ShiftRight<8>(a16), hn::ShiftRight<8>(b16)));
      return hn::BitCast(d, hn::Or(even, odd));
    } else if constexpr (sizeof(T) == 8) {
      // (a1 2^32 + a0)(b1 2^32 + b0) = a0 b0 + 2^32 (a1 b0 + a0 b1) modulo 2^64.
      const hn::Repartition<std::uint32_t, D> d32;
      const auto low = [&](V v) { return hn::BitCast(d32, v); };
      const auto high = [&](V v) { return hn::BitCast(d32, hn::ShiftRight<32>(v)); };
      const V cross = hn::Add(hn::MulEven(high(a), low(b)), hn::MulEven(low(a), high(b)));
      return hn::Add(hn::MulEven(low(a), low(b)), hn::ShiftLeft<32>(cross));
    } else {
      return hn::Mul(a, b);
    }
#endif
  }
  HWY_INLINE T one(T a, T b) const { return static_cast<T>(static_cast<std::uint64_t>(a) * b); }
};

template <class T>
struct IntegerMin {
  template <class D, class V>
  HWY_INLINE V many(D, V a, V b) const {
    return hn::Min(a, b);
  }
  HWY_INLINE T one(T a, T b) const { return b < a ? b : a; }
};

template <class T>
struct IntegerMax {
  template <class D, class V>
  HWY_INLINE V many(D, V a, V b) const {
    return hn::Max(a, b);
  }
  HWY_INLINE T one(T a, T b) const { return a < b ? b : a; }
};

/// Truncates toward zero. In 64 bits, where every divisor fits.
template <class T>
void divide_integers(std::byte* values, std::size_t count, std::uint32_t divisor) noexcept {
  using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  T* const begin = reinterpret_cast<T*>(values);
  for (std::size_t i = 0; i < count; ++i) begin[i] = static_cast<T>(static_cast<Wide>(begin[i]) / Wide{divisor});
}

template <class T>
TypeKernels integer_kernels() noexcept {
  using U = std::make_unsigned_t<T>;
  return {Kernel<U, IntegerSum<U>>::variants(), Kernel<U, IntegerProd<U>>::variants(),
          Kernel<T, IntegerMin<T>>::variants(), Kernel<T, IntegerMax<T>>::variants(), &divide_integers<T>};
}

}  // namespace weft::device::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
