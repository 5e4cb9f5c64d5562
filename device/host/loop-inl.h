// The loops around an operation; compiled once per instruction set (Highway's foreach_target).
#if defined(WEFT_DEVICE_HOST_LOOP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_DEVICE_HOST_LOOP_INL_H_
#undef WEFT_DEVICE_HOST_LOOP_INL_H_
#else
#define WEFT_DEVICE_HOST_LOOP_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "device/host/families.h"

HWY_BEFORE_NAMESPACE();
namespace weft::device::host::HWY_NAMESPACE {
namespace hn = ::hwy::HWY_NAMESPACE;

inline constexpr std::size_t kCacheLineBytes = 64;

/// Whole vectors of `d` over [0, count), count >= Lanes(d). The last vector overlaps the one before; it is computed
/// before anything is stored, so that in place its inputs are still the original ones.
template <class D, class T, class Op>
HWY_INLINE void reduce_vectors(D d, T* destination, const T* left, const T* right, std::size_t count, const Op& op) {
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t last_index = count - lanes;
  const auto last = op.many(d, hn::LoadU(d, left + last_index), hn::LoadU(d, right + last_index));
  std::size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    const auto v0 = op.many(d, hn::LoadU(d, left + i), hn::LoadU(d, right + i));
    const auto v1 = op.many(d, hn::LoadU(d, left + i + lanes), hn::LoadU(d, right + i + lanes));
    const auto v2 = op.many(d, hn::LoadU(d, left + i + 2 * lanes), hn::LoadU(d, right + i + 2 * lanes));
    const auto v3 = op.many(d, hn::LoadU(d, left + i + 3 * lanes), hn::LoadU(d, right + i + 3 * lanes));
    hn::StoreU(v0, d, destination + i);
    hn::StoreU(v1, d, destination + i + lanes);
    hn::StoreU(v2, d, destination + i + 2 * lanes);
    hn::StoreU(v3, d, destination + i + 3 * lanes);
  }
  for (; i < last_index; i += lanes) {
    hn::StoreU(op.many(d, hn::LoadU(d, left + i), hn::LoadU(d, right + i)), d, destination + i);
  }
  hn::StoreU(last, d, destination + last_index);
}

template <class T, class Op>
HWY_INLINE void reduce_scalars(T* destination, const T* left, const T* right, std::size_t count, const Op& op) {
  for (std::size_t i = 0; i < count; ++i) destination[i] = op.one(left[i], right[i]);
}

template <class T, class Op>
HWY_NOINLINE void reduce_cached(T* destination, const T* left, const T* right, std::size_t count, const Op& op) {
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> whole;
  if (count >= hn::Lanes(whole)) return reduce_vectors(whole, destination, left, right, count, op);
  const hn::CappedTag<T, 16 / sizeof(T)> part;
  if (count >= hn::Lanes(part)) return reduce_vectors(part, destination, left, right, count, op);
#endif
  reduce_scalars(destination, left, right, count, op);
}

/// Non-temporal stores fill whole cache lines; what is before the first and after the last line goes the cached way.
template <class T, class Op>
HWY_NOINLINE void reduce_streaming(T* destination, const T* left, const T* right, std::size_t count, const Op& op) {
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto address = reinterpret_cast<std::uintptr_t>(destination);
  const std::size_t head = (kCacheLineBytes - address % kCacheLineBytes) % kCacheLineBytes / sizeof(T);
  // In place the line is in the cache anyway, so that streaming saves nothing.
  if (destination != left && destination != right && address % sizeof(T) == 0 && count > head) {
    reduce_cached(destination, left, right, head, op);
    const std::size_t step = lanes * 4;  // A multiple of a line from 16-byte vectors up.
    std::size_t i = head;
    for (; i + step <= count; i += step) {
      const auto v0 = op.many(d, hn::LoadU(d, left + i), hn::LoadU(d, right + i));
      const auto v1 = op.many(d, hn::LoadU(d, left + i + lanes), hn::LoadU(d, right + i + lanes));
      const auto v2 = op.many(d, hn::LoadU(d, left + i + 2 * lanes), hn::LoadU(d, right + i + 2 * lanes));
      const auto v3 = op.many(d, hn::LoadU(d, left + i + 3 * lanes), hn::LoadU(d, right + i + 3 * lanes));
      hn::Stream(v0, d, destination + i);
      hn::Stream(v1, d, destination + i + lanes);
      hn::Stream(v2, d, destination + i + 2 * lanes);
      hn::Stream(v3, d, destination + i + 3 * lanes);
    }
    ::hwy::FlushStream();  // Non-temporal stores are not ordered with the flag that the caller may set next.
    return reduce_cached(destination + i, left + i, right + i, count - i, op);
  }
#endif
  reduce_cached(destination, left, right, count, op);
}

/// The functions behind the table, T being the type of memory (bf16 and f16 are std::uint16_t there).
template <class T, class Op>
struct Kernel {
  static void cached(std::byte* destination, const std::byte* left, const std::byte* right,
                     std::size_t count) noexcept {
    reduce_cached(reinterpret_cast<T*>(destination), reinterpret_cast<const T*>(left),
                  reinterpret_cast<const T*>(right), count, Op{});
  }
  static void streaming(std::byte* destination, const std::byte* left, const std::byte* right,
                        std::size_t count) noexcept {
    reduce_streaming(reinterpret_cast<T*>(destination), reinterpret_cast<const T*>(left),
                     reinterpret_cast<const T*>(right), count, Op{});
  }
  static void automatic(std::byte* destination, const std::byte* left, const std::byte* right,
                        std::size_t count) noexcept {
    if (count * sizeof(T) < streaming_threshold) [[likely]] {
      cached(destination, left, right, count);
    } else {
      streaming(destination, left, right, count);
    }
  }
  static Variants variants() noexcept { return {&automatic, &cached, &streaming}; }
};

}  // namespace weft::device::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
