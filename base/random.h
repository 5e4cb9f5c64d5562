#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft {

/// Seeded numbers for simulation and tests: the same seed gives the same sequence on every machine.
/// Source: splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() noexcept {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  /// A number in [0, bound); bound > 0. The bias is below bound / 2^64.
  std::uint64_t below(std::uint64_t bound) noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
  }
  /// True in `percent` of 100 draws.
  bool happens(std::uint32_t percent) noexcept { return below(100) < percent; }

 private:
  std::uint64_t state_;
};

/// Fills `bytes` from the system's secure generator (libsodium). Thread: any.
void fill_secure_random(std::span<std::byte> bytes) noexcept;

}  // namespace weft
