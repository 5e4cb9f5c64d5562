#pragma once

#include <cstdint>

#include "collectives/plan/cost.h"
#include "collectives/shape.h"

namespace weft::collectives::select {

/// Ranks of one host through memory that both map, measured on a two-core virtual machine with 32 MiB of shared cache.
/// Latency and step: two processes that spin all-reduce 8 bytes in 0.2-0.3 us, which is one send, one flight and one
/// receive. Bytes: a 1 MiB all-reduce that reads the peer's input and writes its own output takes 37 us. What the peer
/// has just written comes at 2 to 4 bytes a ns only, line by line out of its cache: a plan that reads results of other
/// ranks pays for it, and one that reads their inputs does not.
inline constexpr plan::LinkCost kSharedMemory{.latency_ns = 100,
                                              .bytes_per_ns = 25,
                                              .fresh_bytes_per_ns = 10,
                                              .per_step_ns = 60,
                                              .moved_by_processor = true,
                                              .end_bytes_per_ns = 0};

/// The same where the buffers do not fit the cache: all bytes come from memory, who wrote them matters little.
inline constexpr plan::LinkCost kSharedMemoryBeyondCache{.latency_ns = 100,
                                                         .bytes_per_ns = 6,
                                                         .fresh_bytes_per_ns = 8,
                                                         .per_step_ns = 60,
                                                         .moved_by_processor = true,
                                                         .end_bytes_per_ns = 0};

/// Blocks from this size on are beyond the cache.
/// Measured with two ranks and results that bypass the caches: reading all of the peer's input wins at 16 MiB (1.2 ms
/// to 2.2), halves win at 64 MiB (8.3 ms to 9.8).
inline constexpr std::uint64_t kBeyondCache = std::uint64_t{32} << 20;

/// Ranks of different hosts through sockets. An 8-byte all-reduce of two ranks takes about 10 us on loopback and one
/// stream moved 2.3 GB/s between network namespaces. Most of that is copying at both ends, during which a rank does
/// nothing else, at twice that speed each. The link itself is fast: what limits it in a cluster is the host's port.
inline constexpr plan::LinkCost kTcp{

    .latency_ns = 8000,
    .bytes_per_ns = 20,
    .fresh_bytes_per_ns = 0,
    .per_step_ns = 1000,
    .moved_by_processor = false,
    .end_bytes_per_ns = 5};

/// The machine of a group in the few numbers that a choice depends on. They must be equal on all ranks, or ranks choose
/// different algorithms (which the comparison of plans turns into an error): take them from what all ranks know.
struct Machine {
  plan::LinkCost same_host = kSharedMemory;
  plan::LinkCost same_host_beyond_cache = kSharedMemoryBeyondCache;
  plan::LinkCost other_host = kTcp;
  /// One port of 25 Gbit/s, or four streams of TCP on loopback: 31 Gbit/s.
  double host_bytes_per_ns = 3;
  /// Bytes of the result: a reduction reads two operands from memory and writes one.
  double reduce_bytes_per_ns = 25;
  double copy_bytes_per_ns = 25;
  double reduce_bytes_per_ns_beyond_cache = 6;
  double copy_bytes_per_ns_beyond_cache = 8;
  /// Of the host with the fewest; 0 if unknown, then every rank is taken to have one of its own.
  std::uint32_t cores_per_host = 0;
  /// A core that turns from one rank to another. Ranks that outnumber their cores yield while they wait, so this is a
  /// yield and not a sleep: 4 ranks on 2 cores all-reduce 8 bytes in 7 us, with 8 to 10 turns on each core.
  double switch_ns = 700;
  plan::SlicingLimits slicing{};
};

}  // namespace weft::collectives::select
