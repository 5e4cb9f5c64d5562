#pragma once

#include <cstdint>
#include <optional>

#include "transport/memory.h"

namespace weft::transport::shm {

/// What a RegionKey of this transport says.
///
/// A plain region: `first` is its address (the top bit is never set in a user's address), `second` its size.
/// A shared region: 1 bit that says so, 20 bits fd, 23 bits of the allocation's id, 42 bits offset, 42 bits size.
/// 23 bits of a counter mean that a stale key is told from a new one until the same fd has come back after exactly
/// a multiple of 8 million allocations.
struct KeyContent {
  bool is_shared = false;
  std::uint64_t address = 0;  ///< Of a plain region.
  int fd = -1;                ///< Of a shared region; so are the next two.
  std::uint32_t id_bits = 0;
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
};

inline constexpr unsigned kFdBits = 20;
inline constexpr unsigned kIdBits = 23;
inline constexpr unsigned kExtentBits = 42;
static_assert(1 + kFdBits + kIdBits + 2 * kExtentBits == 128);

constexpr std::uint64_t low_bits(std::uint64_t value, unsigned count) noexcept {
  return value & ((std::uint64_t{1} << count) - 1);
}

inline RegionKey encode_plain_key(const std::byte* base, std::uint64_t size_bytes) noexcept {
  return {reinterpret_cast<std::uint64_t>(base), size_bytes};
}

/// Nullopt if a number does not fit (an fd over a million, a segment over 4 TiB).
constexpr std::optional<RegionKey> encode_shared_key(int fd, std::uint64_t id, std::uint64_t offset,
                                                     std::uint64_t size_bytes) noexcept {
  if ((static_cast<std::uint64_t>(fd) >> kFdBits) != 0 || (offset >> kExtentBits) != 0 ||
      (size_bytes >> kExtentBits) != 0) {
    return std::nullopt;
  }
  constexpr unsigned kLowOffsetBits = 64 - kExtentBits;  // 22 in `second`, the other 20 in `first`.
  return RegionKey{.first = (std::uint64_t{1} << 63) | (static_cast<std::uint64_t>(fd) << 43) |
                            (low_bits(id, kIdBits) << 20) | (offset >> kLowOffsetBits),
                   .second = (low_bits(offset, kLowOffsetBits) << kExtentBits) | size_bytes};
}

constexpr KeyContent decode_key(const RegionKey& key) noexcept {
  if ((key.first >> 63) == 0) return {.address = key.first, .size_bytes = key.second};
  return {.is_shared = true,
          .fd = static_cast<int>(low_bits(key.first >> 43, kFdBits)),
          .id_bits = static_cast<std::uint32_t>(low_bits(key.first >> 20, kIdBits)),
          .offset = (low_bits(key.first, 20) << 22) | (key.second >> kExtentBits),
          .size_bytes = low_bits(key.second, kExtentBits)};
}

}  // namespace weft::transport::shm
