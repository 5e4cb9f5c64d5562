#pragma once

#include <cstdint>

#include "collectives/shape.h"

namespace weft::collectives::select {

/// What it takes to move bytes between two ranks, as far as a choice needs to know it.
struct Link {
  std::uint32_t latency_ns = 0;       ///< From the start of a send to the start of what waits for its data, of 0 bytes.
  std::uint32_t megabytes_per_s = 1;  ///< Of one stream of large transfers; 1 MB/s moves a byte in 1000 ns.
};

/// Ranks of one host through shared memory. The latency is half of the 0.2-0.3 us in which two processes that spin on
/// two cores exchange 8 bytes and reduce them; memcpy from memory moved 9-12 GB/s.
inline constexpr Link kSharedMemory{.latency_ns = 120, .megabytes_per_s = 9000};
/// TCP: an 8-byte all-reduce of two ranks takes about 10 us on loopback, 1 MiB 284 us with 2 reads and writes.
inline constexpr Link kTcp{.latency_ns = 10'000, .megabytes_per_s = 2500};

/// The machine of a group in the few numbers that a choice depends on. They must be equal on all ranks, or ranks choose
/// different algorithms (which the agreement on the plan's hash turns into an error): take them from what all know.
struct Machine {
  Link same_host = kSharedMemory;
  Link other_host = kTcp;
  /// Of the host with the fewest; 0 if unknown, then every rank is taken to have one.
  std::uint32_t cores_per_host = 0;
};

}  // namespace weft::collectives::select
