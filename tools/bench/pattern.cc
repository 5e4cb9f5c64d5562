#include "tools/bench/pattern.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace weft::tools {
namespace {

using device::DataType;
using device::ReduceOp;

constexpr std::uint64_t kPeriod = 4093;
/// With more ranks than this only the first ones multiply by anything but 1: f16 has exponents from -14 to 15.
constexpr std::uint32_t kMultiplying = 14;

std::uint64_t mixed(std::uint64_t value) {  // The finalizer of SplitMix64.
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

std::uint64_t random_at(std::uint32_t rank, std::uint64_t index) {
  return mixed((static_cast<std::uint64_t>(rank) + 1) * 0x9e3779b97f4a7c15ULL + index);
}

bool is_float(DataType type) { return type >= DataType::f16; }

/// Up to where all whole numbers are exact (floats) or fit (integers).
std::uint64_t exact_limit(DataType type) {
  switch (type) {
    case DataType::i8: return 127;
    case DataType::u8: return 255;
    case DataType::bf16: return 256;
    case DataType::f16: return 2048;
    default: return 1U << 24;
  }
}

/// A normal number of a 16-bit float: sign, exponent and mantissa put together.
std::uint16_t encode_short(double value, int mantissa_bits, int bias) {
  if (value == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(std::abs(value), &exponent);  // 0.5 <= fraction < 1
  const auto mantissa = static_cast<std::uint16_t>(std::ldexp(fraction * 2 - 1, mantissa_bits));
  const auto biased = static_cast<std::uint16_t>(exponent - 1 + bias);
  return static_cast<std::uint16_t>((value < 0 ? 0x8000 : 0) | (biased << mantissa_bits) | mantissa);
}

template <class T>
void put(T value, std::byte* to) {
  std::memcpy(to, &value, sizeof value);
}

}  // namespace

void encode(double value, DataType type, std::byte* to) {
  // Through 64 bits: a conversion out of a type's range would be undefined, this wraps.
  const auto whole = static_cast<std::uint64_t>(static_cast<std::int64_t>(is_float(type) ? 0 : value));
  switch (type) {
    case DataType::i8:
    case DataType::u8: return put(static_cast<std::uint8_t>(whole), to);
    case DataType::i32:
    case DataType::u32: return put(static_cast<std::uint32_t>(whole), to);
    case DataType::i64:
    case DataType::u64: return put(whole, to);
    case DataType::f16: return put(encode_short(value, 10, 15), to);
    case DataType::bf16: return put(encode_short(value, 7, 127), to);
    case DataType::f32: return put(static_cast<float>(value), to);
    case DataType::f64: return put(value, to);
  }
}

Pattern::Pattern(DataType type, std::optional<ReduceOp> op, std::uint32_t ranks)
    : type_(type), op_(op), ranks_(ranks), type_bytes_(device::size_of(type)) {}

double Pattern::reduction_input(std::uint32_t rank, std::uint64_t index) const {
  const std::uint64_t random = random_at(rank, index);
  const std::uint64_t limit = exact_limit(type_);
  switch (*op_) {
    case ReduceOp::sum: {
      if (rank >= limit) return 0;  // More ranks than the sum has room for.
      return static_cast<double>(random % (std::max<std::uint64_t>(limit / ranks_, 1) + 1));
    }
    case ReduceOp::prod:
      if (rank >= kMultiplying) return 1;
      return is_float(type_) ? std::ldexp(1.0, static_cast<int>(random % 3) - 1) : static_cast<double>(random % 2 + 1);
    case ReduceOp::min:
    case ReduceOp::max: return static_cast<double>(random % 128);
    case ReduceOp::avg: {
      // Neighbours differ from the average by one, up and down, so that it is a whole number.
      const std::uint64_t room = limit / ranks_;
      if (room < 3) return 0;
      const double average = static_cast<double>(1 + random_at(0, index) % (room - 2));
      if (rank % 2 == 1) return average - 1;
      return rank + 1 < ranks_ ? average + 1 : average;
    }
  }
  return 0;
}

std::vector<std::byte> Pattern::inputs_of(std::uint32_t rank) const {
  std::vector<std::byte> period(kPeriod * type_bytes_);
  for (std::uint64_t i = 0; i < kPeriod; ++i) {
    std::byte* const to = period.data() + i * type_bytes_;
    if (op_) {
      encode(reduction_input(rank, i), type_, to);
    } else {
      const std::uint64_t random = random_at(rank, i);
      std::memcpy(to, &random, type_bytes_);
    }
  }
  return period;
}

std::vector<std::byte> Pattern::results() const {
  std::vector<std::byte> period(kPeriod * type_bytes_);
  for (std::uint64_t i = 0; i < kPeriod; ++i) {
    double result = reduction_input(0, i);
    for (std::uint32_t rank = 1; rank < ranks_; ++rank) {
      const double input = reduction_input(rank, i);
      switch (*op_) {
        case ReduceOp::sum:
        case ReduceOp::avg: result += input; break;
        case ReduceOp::prod: result *= input; break;
        case ReduceOp::min: result = std::min(result, input); break;
        case ReduceOp::max: result = std::max(result, input); break;
      }
    }
    if (*op_ == ReduceOp::avg) result /= ranks_;
    encode(result, type_, period.data() + i * type_bytes_);
  }
  return period;
}

void Pattern::fill(std::byte* to, std::uint32_t rank, std::uint64_t first, std::uint64_t count) const {
  const std::vector<std::byte> period = inputs_of(rank);
  for (std::uint64_t i = 0; i < count;) {
    const std::uint64_t phase = (first + i) % kPeriod;
    const std::uint64_t run = std::min(kPeriod - phase, count - i);
    std::memcpy(to + i * type_bytes_, period.data() + phase * type_bytes_, run * type_bytes_);
    i += run;
  }
}

std::uint64_t Pattern::count_wrong_moved(const std::byte* found, std::uint32_t rank, std::uint64_t first,
                                         std::uint64_t count) const {
  return count_differences(found, inputs_of(rank), first, count);
}

std::uint64_t Pattern::count_wrong_reduced(const std::byte* found, std::uint64_t first, std::uint64_t count) const {
  return count_differences(found, results(), first, count);
}

std::uint64_t Pattern::count_differences(const std::byte* found, const std::vector<std::byte>& period,
                                         std::uint64_t first, std::uint64_t count) const {
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < count;) {
    const std::uint64_t phase = (first + i) % kPeriod;
    const std::uint64_t run = std::min(kPeriod - phase, count - i);
    const std::byte* const left = found + i * type_bytes_;
    const std::byte* const right = period.data() + phase * type_bytes_;
    if (std::memcmp(left, right, run * type_bytes_) != 0) {
      for (std::uint64_t k = 0; k < run; ++k) {
        wrong += std::memcmp(left + k * type_bytes_, right + k * type_bytes_, type_bytes_) != 0 ? 1 : 0;
      }
    }
    i += run;
  }
  return wrong;
}

}  // namespace weft::tools
