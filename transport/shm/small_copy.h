#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weft::transport::shm {

/// memcpy for at most 64 bytes, without a call and without a loop from 4 bytes on: two overlapping moves of the largest
/// power of two that fits.
inline void small_copy(std::byte* destination, const std::byte* source, std::size_t size) noexcept {
  struct Half {
    std::uint64_t words[4];
  };
  const auto two = [&]<class Part>(Part) {
    Part first;
    Part last;
    std::memcpy(&first, source, sizeof first);
    std::memcpy(&last, source + size - sizeof last, sizeof last);
    std::memcpy(destination, &first, sizeof first);
    std::memcpy(destination + size - sizeof last, &last, sizeof last);
  };
  if (size >= 32) return two(Half{});
  if (size >= 16) {
    // By words: a header that was written by words a moment ago is forwarded from the store buffer only to loads that
    // lie within one of those stores.
    std::uint64_t words[4];
    std::memcpy(&words[0], source, 8);
    std::memcpy(&words[1], source + 8, 8);
    std::memcpy(&words[2], source + size - 16, 8);
    std::memcpy(&words[3], source + size - 8, 8);
    std::memcpy(destination, &words[0], 8);
    std::memcpy(destination + 8, &words[1], 8);
    std::memcpy(destination + size - 16, &words[2], 8);
    std::memcpy(destination + size - 8, &words[3], 8);
    return;
  }
  if (size >= 8) return two(std::uint64_t{});
  if (size >= 4) return two(std::uint32_t{});
  for (std::size_t i = 0; i < size; ++i) destination[i] = source[i];
}

}  // namespace weft::transport::shm
