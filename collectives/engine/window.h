#pragma once

#include <cstdint>

namespace weft::collectives::engine {

/// A notice with this bit is a write into a window; without, it is a landing. Then come 13 bits of the write's number
/// (counted for each window and pair of ranks), and the window in the rest.
inline constexpr std::uint32_t kWindowNotice = 0x80000000U;
inline constexpr unsigned kWindowBits = 18;
inline constexpr std::uint32_t kWindowsMax = std::uint32_t{1} << kWindowBits;
inline constexpr std::uint32_t kWriteNumbers = std::uint32_t{1} << (31 - kWindowBits);
/// Writes of one window and pair that may overtake each other: then the number tells which one has arrived.
inline constexpr std::uint32_t kWritesApart = kWriteNumbers / 2;
/// A token with this bit belongs to the put in the other bits; without, it is a landing.
inline constexpr std::uint64_t kPutToken = std::uint64_t{1} << 63;

}  // namespace weft::collectives::engine
