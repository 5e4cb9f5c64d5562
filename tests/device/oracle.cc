#include "tests/device/oracle.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace weft::device::oracle {
namespace {

/// A binary floating-point format of at most 16 bits.
struct Format {
  int fraction_bits;
  int exponent_bits;
  [[nodiscard]] int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  [[nodiscard]] Bits sign_bit() const { return Bits{1} << (fraction_bits + exponent_bits); }
  [[nodiscard]] Bits infinity() const { return ((Bits{1} << exponent_bits) - 1) << fraction_bits; }
  [[nodiscard]] Bits quiet_nan() const { return infinity() | (Bits{1} << (fraction_bits - 1)); }
};
Format format_of(DataType type) { return type == DataType::f16 ? Format{10, 5} : Format{7, 8}; }

template <class T>
T operate(ReduceOp op, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
    const bool both_zero = a == 0 && b == 0;
    switch (op) {
      case ReduceOp::prod: return a * b;
      case ReduceOp::min: return both_zero ? (std::signbit(a) ? a : b) : (a < b ? a : b);
      case ReduceOp::max: return both_zero ? (std::signbit(a) ? b : a) : (a > b ? a : b);
      default: return a + b;
    }
  } else {
    __extension__ using Wide = __int128;
    __extension__ using UnsignedWide = unsigned __int128;
    switch (op) {
      case ReduceOp::prod:
        return static_cast<T>(static_cast<UnsignedWide>(Wide{a}) * static_cast<UnsignedWide>(Wide{b}));
      case ReduceOp::min: return a < b ? a : b;
      case ReduceOp::max: return a > b ? a : b;
      default: return static_cast<T>(Wide{a} + Wide{b});
    }
  }
}

template <class T>
T quotient(T value, std::uint32_t divisor) {
  if constexpr (std::is_floating_point_v<T>) {
    return value / static_cast<T>(divisor);
  } else {
    __extension__ using Wide = __int128;
    return static_cast<T>(Wide{value} / Wide{divisor});
  }
}

template <class T>
T from_bits(Bits bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
template <class T>
Bits to_bits(T value) {
  Bits bits = 0;
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value)) value = from_bits<T>(sizeof(T) == 4 ? 0x7FC00000u : 0x7FF8000000000000u);
  }
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

/// Calls `body` with a value of the C++ type that stands for `type`.
template <class Body>
Bits with_type(DataType type, Body body) {
  switch (type) {
    case DataType::i8: return body(std::int8_t{});
    case DataType::u8: return body(std::uint8_t{});
    case DataType::i32: return body(std::int32_t{});
    case DataType::u32: return body(std::uint32_t{});
    case DataType::i64: return body(std::int64_t{});
    case DataType::u64: return body(std::uint64_t{});
    case DataType::f64: return body(double{});
    default: return body(float{});
  }
}
bool is_narrow(DataType type) { return type == DataType::f16 || type == DataType::bf16; }

}  // namespace

double widen(DataType type, Bits bits) {
  const Format format = format_of(type);
  const double sign = (bits & format.sign_bit()) != 0 ? -1.0 : 1.0;
  const Bits magnitude = bits & (format.sign_bit() - 1);
  if (magnitude > format.infinity()) return std::nan("");
  if (magnitude == format.infinity()) return sign * HUGE_VAL;
  const Bits fraction = magnitude & ((Bits{1} << format.fraction_bits) - 1);
  const int exponent = static_cast<int>(magnitude >> format.fraction_bits);
  if (exponent == 0) return sign * std::ldexp(static_cast<double>(fraction), 1 - format.bias() - format.fraction_bits);
  const Bits significand = fraction | (Bits{1} << format.fraction_bits);
  return sign * std::ldexp(static_cast<double>(significand), exponent - format.bias() - format.fraction_bits);
}

Bits narrow(DataType type, double value) {
  const Format format = format_of(type);
  if (std::isnan(value)) return format.quiet_nan();
  const Bits sign = std::signbit(value) ? format.sign_bit() : 0;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (std::isinf(magnitude)) return sign | format.infinity();
  const int exponent = std::max(std::ilogb(magnitude), 1 - format.bias());
  // In units of the last place; the bits of a format are consecutive, so a carry walks into the exponent by itself.
  const double units = std::nearbyint(std::ldexp(magnitude, format.fraction_bits - exponent));
  const Bits bits =
      (static_cast<Bits>(exponent + format.bias() - 1) << format.fraction_bits) + static_cast<Bits>(units);
  return sign | std::min(bits, format.infinity());
}

Bits reduce(DataType type, ReduceOp op, Bits left, Bits right) {
  if (is_narrow(type)) {
    const auto a = static_cast<float>(widen(type, left)), b = static_cast<float>(widen(type, right));
    return narrow(type, operate(op, a, b));
  }
  return with_type(type, [&](auto sample) {
    using T = decltype(sample);
    return to_bits(operate(op, from_bits<T>(left), from_bits<T>(right)));
  });
}

Bits divide(DataType type, Bits value, std::uint32_t divisor) {
  if (is_narrow(type)) return narrow(type, quotient(static_cast<float>(widen(type, value)), divisor));
  return with_type(type, [&](auto sample) {
    using T = decltype(sample);
    return to_bits(quotient(from_bits<T>(value), divisor));
  });
}

Bits load(DataType type, const std::byte* from) {
  Bits bits = 0;
  std::memcpy(&bits, from, size_of(type));
  return bits;
}
void store(DataType type, std::byte* to, Bits bits) { std::memcpy(to, &bits, size_of(type)); }

std::vector<Bits> special_values(DataType type) {
  std::vector<Bits> values;
  int fraction_bits = 0;
  switch (type) {
    case DataType::f16: fraction_bits = 10; break;
    case DataType::bf16: fraction_bits = 7; break;
    case DataType::f32: fraction_bits = 23; break;
    case DataType::f64: fraction_bits = 52; break;
    default: break;
  }
  const Bits sign = Bits{1} << (8 * size_of(type) - 1);
  if (fraction_bits == 0) {
    for (const Bits bits :
         {Bits{0}, Bits{1}, Bits{2}, Bits{3}, Bits{0x7F}, sign - 1, sign, sign + 1, sign | (sign - 1)}) {
      values.push_back(bits);
    }
    return values;
  }
  const Bits infinity = (sign - 1) >> fraction_bits << fraction_bits;
  const Bits one = (infinity >> 1) >> fraction_bits << fraction_bits;
  const Bits fraction = (Bits{1} << fraction_bits) - 1;
  for (const Bits magnitude :
       {Bits{0}, Bits{1}, Bits{3}, fraction, fraction + 1, one, one + 1, one + 3, one | fraction, infinity - 1,
        infinity - 1 - fraction, infinity, infinity | 1, infinity | fraction, infinity | (fraction + 1) >> 1}) {
    values.push_back(magnitude);
    values.push_back(sign | magnitude);
  }
  return values;
}

Bits random_value(DataType type, Random& random) {
  static const std::vector<Bits> kSpecials[kDataTypes] = {special_values(DataType::i8),  special_values(DataType::u8),
                                                          special_values(DataType::i32), special_values(DataType::u32),
                                                          special_values(DataType::i64), special_values(DataType::u64),
                                                          special_values(DataType::f16), special_values(DataType::bf16),
                                                          special_values(DataType::f32), special_values(DataType::f64)};
  const Bits mask = size_of(type) == 8 ? ~Bits{0} : (Bits{1} << (8 * size_of(type))) - 1;
  if (random.happens(50)) return random.next() & mask;
  const auto& choices = kSpecials[static_cast<std::size_t>(type)];
  return choices[random.below(choices.size())];
}

}  // namespace weft::device::oracle
