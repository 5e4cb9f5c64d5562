// Reductions on the GPU, with the bits that docs/numerics.md promises: those of the host kernels.
// Compiled to a fatbin by cmake/cuda.cmake where nvcc is found; never needed to build Weft.
#include <cuda_fp16.h>

#include <cstdint>

namespace {

/// What an element is computed with, and how it gets there and back.
template <class T>
struct Plain {
  using Memory = T;
  using Value = T;
  static __device__ T widen(T value) { return value; }
  static __device__ T narrow(T value) { return value; }
};
struct Half {
  using Memory = std::uint16_t;
  using Value = float;
  static __device__ float widen(Memory bits) { return __half2float(__ushort_as_half(bits)); }
  static __device__ Memory narrow(float value) {
    return value != value ? 0x7E00 : __half_as_ushort(__float2half_rn(value));
  }
};
struct Bfloat {
  using Memory = std::uint16_t;
  using Value = float;
  static __device__ float widen(Memory bits) { return __uint_as_float(static_cast<unsigned>(bits) << 16); }
  static __device__ Memory narrow(float value) {
    const unsigned bits = __float_as_uint(value);
    return value != value ? 0x7FC0 : static_cast<Memory>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
  }
};

__device__ float quiet(float value) { return value != value ? __uint_as_float(0x7FC00000u) : value; }
__device__ double quiet(double value) { return value != value ? __longlong_as_double(0x7FF8000000000000ll) : value; }
__device__ bool is_negative(float value) { return (__float_as_uint(value) >> 31) != 0; }
__device__ bool is_negative(double value) { return __double_as_longlong(value) < 0; }

template <class T>
constexpr bool kIsFloat = static_cast<T>(0.5) != static_cast<T>(0);

struct Sum {
  template <class T>
  static __device__ T apply(T a, T b) {
    if constexpr (kIsFloat<T>) {
      return quiet(a + b);
    } else {
      return static_cast<T>(static_cast<unsigned long long>(a) + static_cast<unsigned long long>(b));
    }
  }
};
struct Prod {
  template <class T>
  static __device__ T apply(T a, T b) {
    if constexpr (kIsFloat<T>) {
      return quiet(a * b);
    } else {
      return static_cast<T>(static_cast<unsigned long long>(a) * static_cast<unsigned long long>(b));
    }
  }
};
struct Min {
  template <class T>
  static __device__ T apply(T a, T b) {
    if constexpr (kIsFloat<T>) {
      if (a != a || b != b) return quiet(a != a ? a : b);
      if (a == b) return is_negative(a) ? a : b;
    }
    return a < b ? a : b;
  }
};
struct Max {
  template <class T>
  static __device__ T apply(T a, T b) {
    if constexpr (kIsFloat<T>) {
      if (a != a || b != b) return quiet(a != a ? a : b);
      if (a == b) return is_negative(a) ? b : a;
    }
    return a > b ? a : b;
  }
};

template <class Format, class Op>
__device__ void reduce(void* destination, const void* left, const void* right, unsigned long long count) {
  using Memory = typename Format::Memory;
  auto* const d = static_cast<Memory*>(destination);
  const auto* const a = static_cast<const Memory*>(left);
  const auto* const b = static_cast<const Memory*>(right);
  const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  for (unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    d[i] = Format::narrow(Op::template apply<typename Format::Value>(Format::widen(a[i]), Format::widen(b[i])));
  }
}

template <class T>
__device__ T quotient(T value, unsigned divisor) {
  if constexpr (kIsFloat<T>) {
    return quiet(value / static_cast<T>(divisor));
  } else if constexpr (static_cast<T>(-1) < static_cast<T>(0)) {
    return static_cast<T>(static_cast<long long>(value) / static_cast<long long>(divisor));
  } else {
    return static_cast<T>(static_cast<unsigned long long>(value) / divisor);
  }
}

template <class Format>
__device__ void divide(void* values, unsigned long long count, unsigned divisor) {
  auto* const v = static_cast<typename Format::Memory*>(values);
  const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  for (unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    v[i] = Format::narrow(quotient(Format::widen(v[i]), divisor));
  }
}

}  // namespace

#define WEFT_REDUCE(op_name, Op, type_name, ...)                                                                  \
  extern "C" __global__ void weft_##op_name##_##type_name(void* destination, const void* left, const void* right, \
                                                          unsigned long long count) {                             \
    reduce<__VA_ARGS__, Op>(destination, left, right, count);                                                     \
  }
#define WEFT_TYPE(type_name, ...)                                                                                \
  WEFT_REDUCE(sum, Sum, type_name, __VA_ARGS__)                                                                  \
  WEFT_REDUCE(prod, Prod, type_name, __VA_ARGS__)                                                                \
  WEFT_REDUCE(min, Min, type_name, __VA_ARGS__)                                                                  \
  WEFT_REDUCE(max, Max, type_name, __VA_ARGS__)                                                                  \
  extern "C" __global__ void weft_divide_##type_name(void* values, unsigned long long count, unsigned divisor) { \
    divide<__VA_ARGS__>(values, count, divisor);                                                                 \
  }

WEFT_TYPE(int8, Plain<std::int8_t>)
WEFT_TYPE(uint8, Plain<std::uint8_t>)
WEFT_TYPE(int32, Plain<std::int32_t>)
WEFT_TYPE(uint32, Plain<std::uint32_t>)
WEFT_TYPE(int64, Plain<std::int64_t>)
WEFT_TYPE(uint64, Plain<std::uint64_t>)
WEFT_TYPE(half, Half)
WEFT_TYPE(bfloat16, Bfloat)
WEFT_TYPE(float, Plain<float>)
WEFT_TYPE(double, Plain<double>)
