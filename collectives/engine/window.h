#pragma once

#include <cstdint>

namespace weft::collectives::engine {

/// A notice with this bit is a signal of the window in the other bits; without, it is a landing.
inline constexpr std::uint32_t kWindowNotice = 0x80000000U;
/// With this bit too: a write arrived that is no signal.
inline constexpr std::uint32_t kSilentNotice = 0x40000000U;
/// A token with this bit belongs to the put in the other bits; without, it is a landing.
inline constexpr std::uint64_t kPutToken = std::uint64_t{1} << 63;

}  // namespace weft::collectives::engine
