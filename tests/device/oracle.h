#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "device/types.h"

/// What docs/numerics.md promises, written as slowly and plainly as possible, without the kernels' tricks.
namespace weft::device::oracle {

/// The bits of one element (in the low bytes).
using Bits = std::uint64_t;

Bits reduce(DataType type, ReduceOp op, Bits left, Bits right);
Bits divide(DataType type, Bits value, std::uint32_t divisor);

Bits load(DataType type, const std::byte* from);
void store(DataType type, std::byte* to, Bits bits);

/// Zeros, infinities, NaNs with and without payload, subnormals, extremes, halfway cases.
std::vector<Bits> special_values(DataType type);
/// A special value or any bits, half and half.
Bits random_value(DataType type, Random& random);

/// The value of a 16-bit float, exactly.
double widen(DataType type, Bits bits);
/// The 16-bit float nearest to `value`, ties to even.
Bits narrow(DataType type, double value);

}  // namespace weft::device::oracle
