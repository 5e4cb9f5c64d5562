#pragma once

#include <cstdint>

#include "collectives/plan/cost.h"
#include "collectives/shape.h"

namespace weft::collectives::select {

/// Ranks of one host through memory that both map, on a two-core virtual machine.
/// Latency and step: two processes that spin all-reduce 8 bytes in 0.2-0.3 us, which is one send, one flight and one
/// receive. Bytes: memcpy from memory moved 9-12 GB/s; in cache over 40, which only makes the choice less important.
inline constexpr plan::LinkCost kSharedMemory{
    .latency_ns = 100, .bytes_per_ns = 10, .per_step_ns = 60, .moved_by_processor = true, .end_bytes_per_ns = 0};

/// Ranks of different hosts through sockets. An 8-byte all-reduce of two ranks takes about 10 us on loopback and one
/// stream moved 2.3 GB/s between network namespaces. Most of that is copying at both ends, during which a rank does
/// nothing else, at twice that speed each. The link itself is fast: what limits it in a cluster is the host's port.
inline constexpr plan::LinkCost kTcp{
    .latency_ns = 8000, .bytes_per_ns = 20, .per_step_ns = 1000, .moved_by_processor = false, .end_bytes_per_ns = 5};

/// The machine of a group in the few numbers that a choice depends on. They must be equal on all ranks, or ranks choose
/// different algorithms (which the comparison of plans turns into an error): take them from what all ranks know.
struct Machine {
  plan::LinkCost same_host = kSharedMemory;
  plan::LinkCost other_host = kTcp;
  /// One port of 25 Gbit/s, or four streams of TCP on loopback: 31 Gbit/s.
  double host_bytes_per_ns = 3;
  /// Bytes of the result: a reduction reads two operands from memory and writes one.
  double reduce_bytes_per_ns = 8;
  double copy_bytes_per_ns = 10;
  /// Of the host with the fewest; 0 if unknown, then every rank is taken to have one of its own.
  std::uint32_t cores_per_host = 0;
  /// A rank that blocks, and another one that wakes up: 4 ranks on 2 cores all-reduce 8 bytes in 12-15 us, in which
  /// each core turns to another rank three to four times.
  double switch_ns = 4000;
};

}  // namespace weft::collectives::select
