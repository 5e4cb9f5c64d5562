#pragma once

#include <cstdint>

#include "transport/sim/sim.h"

namespace weft::test {

/// The ways in which a link can carry what does not fit a message.
struct LinkKind {
  const char* name;
  transport::LargePath large;
  transport::PlainPath plain;
  bool maps_shared;
};
inline constexpr LinkKind kLinkKinds[] = {
    {"write", transport::LargePath::write, transport::PlainPath::staging, false},
    {"read", transport::LargePath::read, transport::PlainPath::read, false},
    {"staging", transport::LargePath::read, transport::PlainPath::staging, false},
    {"mapped", transport::LargePath::read, transport::PlainPath::staging, true},
};
inline constexpr int kNumLinkKinds = 4;

/// Links that delay, stall and refuse posts, with limits so low that small calls take every path.
inline transport::sim::SimOptions options_of(const LinkKind& kind, std::uint32_t ranks, std::uint64_t seed) {
  transport::sim::SimOptions options;
  options.ranks = ranks;
  options.seed = seed;
  options.faults.delay = std::chrono::microseconds(30);
  options.faults.stall_percent = 5;
  options.faults.post_again_percent = 10;
  options.link.large_path = kind.large;
  options.link.plain_path = kind.plain;
  options.link.maps_shared_memory = kind.maps_shared;
  options.link.message_size_max = 256 + 24;
  options.link.eager_limit = 200;
  return options;
}

}  // namespace weft::test
