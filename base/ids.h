#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace weft {

/// A process's position in a group, 0 <= value < size of the group.
class Rank {
 public:
  constexpr Rank() = default;
  constexpr explicit Rank(std::uint32_t value) : value_(value) {}
  [[nodiscard]] constexpr std::uint32_t value() const noexcept { return value_; }
  /// The rank as a position in an array.
  [[nodiscard]] constexpr std::size_t index() const noexcept { return value_; }
  friend constexpr auto operator<=>(Rank, Rank) = default;

 private:
  std::uint32_t value_ = 0;
};

/// How many ranks a group has; at least 1.
class RankCount {
 public:
  constexpr explicit RankCount(std::uint32_t value) : value_(value) {}
  [[nodiscard]] constexpr std::uint32_t value() const noexcept { return value_; }
  friend constexpr auto operator<=>(RankCount, RankCount) = default;

 private:
  std::uint32_t value_;
};

}  // namespace weft

template <>
struct std::hash<weft::Rank> {
  std::size_t operator()(weft::Rank rank) const noexcept { return rank.index(); }
};
