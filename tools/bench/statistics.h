#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "collectives/contract.h"

namespace weft::tools {

/// What is said of the times of a loop. All in microseconds.
struct Times {
  double median_us = 0;
  double p99_us = 0;  ///< Nearest rank.
  double min_us = 0;
};

/// Of times in nanoseconds; at least one. Thread: any.
Times times_of(std::vector<double> times_ns);

/// How many iterations of `each_ns` fit the budget: at least 5, at most 20000, the same rule for every peer of
/// scripts/compare_peers.sh. Thread: any.
std::uint64_t iterations_for(double each_ns, Nanos budget);

/// Elements of one block (see weft.h) of a message of about `size_bytes`, the larger of a rank's two buffers; at least
/// one, so that the message may be larger than asked for. barrier: 0. Thread: any.
std::uint64_t block_count(collectives::Collective collective, std::uint64_t size_bytes, std::uint64_t type_bytes,
                          std::uint32_t ranks);
/// The message's size: the larger of a rank's two buffers. The inverse of block_count up to rounding.
std::uint64_t message_bytes(collectives::Collective collective, std::uint64_t count, std::uint64_t type_bytes,
                            std::uint32_t ranks);

/// busbw / algbw: 2(n-1)/n for all_reduce; (n-1)/n for all_gather, reduce_scatter, all_to_all, gather, scatter; 1 for
/// broadcast and reduce; 0 (no meaning) for one rank and for barrier. Thread: any.
double bus_factor(collectives::Collective collective, std::uint32_t ranks);

/// 10^9 bytes per second; 0 if the time is 0. Thread: any.
double gigabytes_per_second(std::uint64_t size_bytes, double microseconds);

}  // namespace weft::tools
