#pragma once

#include <algorithm>
#include <cstdint>

namespace weft::collectives::plan {

/// How parts are cut into slices that move through a plan independently of each other, some of them at a time. Equal on
/// all ranks of a group.
///
/// Slices overlap the steps of a plan, and what is under way stays in the second-level cache on its way through links
/// and landing buffers. Each costs a few messages. Measured: docs/decisions/0004-slices.md.
struct SlicingLimits {
  std::uint64_t slice_bytes = std::uint64_t{128} << 10;  ///< 0: nothing is cut.
  std::uint32_t in_flight = 4;
  std::uint64_t whole_bytes = 0;  ///< A part of up to so many bytes is one slice all the same.

  /// Ranks that share their memory: each slice is one copy or reduction, and larger ones have fewer seams.
  static constexpr SlicingLimits one_host() noexcept { return {.slice_bytes = std::uint64_t{512} << 10}; }
  /// Through sockets. What is under way at once anyway is not worth cutting.
  static constexpr SlicingLimits several_hosts() noexcept { return {.whole_bytes = std::uint64_t{512} << 10}; }

  [[nodiscard]] constexpr std::uint64_t num_slices(std::uint64_t part_bytes) const noexcept {
    if (slice_bytes == 0 || part_bytes <= std::max(slice_bytes, whole_bytes)) return 1;
    return part_bytes / slice_bytes + (part_bytes % slice_bytes != 0 ? 1 : 0);
  }
};

}  // namespace weft::collectives::plan
