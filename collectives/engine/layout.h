#pragma once

#include <algorithm>
#include <cstdint>

namespace weft::collectives::engine {

/// A half-open range of elements.
struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  [[nodiscard]] constexpr std::uint64_t size() const noexcept { return end - begin; }
};

/// Part `index` of `count` elements split into `parts` balanced, contiguous parts.
///
/// Parts differ by at most one element; where parts are large enough, inner borders are multiples of `unit` elements (a
/// cache line), so that vector and non-temporal stores stay aligned, and parts then differ by at most one unit plus the
/// tail. Both ends of a transfer compute the same split from the same four numbers. No product of two of them is
/// formed, so every count up to 2^64 - 1 is exact (CASES C04).
constexpr Range part_of(std::uint64_t count, std::uint64_t parts, std::uint64_t index, std::uint64_t unit) noexcept {
  if (unit > 1 && count / unit >= 4 * parts) {
    const std::uint64_t units = count / unit;
    const Range in_units = part_of(units, parts, index, 1);
    const std::uint64_t end = index + 1 == parts ? count : in_units.end * unit;
    return {in_units.begin * unit, end};
  }
  const std::uint64_t quotient = count / parts;
  const std::uint64_t remainder = count % parts;
  const std::uint64_t begin = index * quotient + std::min(index, remainder);
  return {begin, begin + quotient + (index < remainder ? 1 : 0)};
}

/// The longest part of such a split, in elements: no part is longer.
constexpr std::uint64_t longest_part(std::uint64_t count, std::uint64_t parts, std::uint64_t unit) noexcept {
  const std::uint64_t first = part_of(count, parts, 0, unit).size();
  const std::uint64_t last = part_of(count, parts, parts - 1, unit).size();
  return std::max(first, last);
}

/// Elements of `element_size` bytes in a cache line; 1 for larger elements.
constexpr std::uint64_t line_unit(std::uint64_t element_size) noexcept {
  constexpr std::uint64_t kLine = 64;
  return std::max<std::uint64_t>(1, kLine / element_size);
}

}  // namespace weft::collectives::engine
