#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/tcp/tcp.h"

// The sizes that the data path of tcp works with.
namespace weft::transport::tcp {

/// Large writes travel in pieces of this size: far above the cost of a system call (a few us move 64 KiB), and small
/// enough that a message waits little behind one (50 us at 20 GB/s).
inline constexpr std::uint64_t kStripeSize = 1 << 20;
/// What one poll moves per stream and direction at most, so that other peers progress too.
inline constexpr std::uint64_t kPollBudget = 2 << 20;
/// Holds the longest message whole, with room to receive several small ones at once.
inline constexpr std::size_t kReceiveBuffer = 256 << 10;
static_assert(kReceiveBuffer >= 2 * (kMessageSizeMax + 8));
/// What is received at once where no payload is expected: larger only copies more of a write that begins there.
inline constexpr std::size_t kReadAhead = 64 << 10;
/// Behind a payload that goes into its place so much is received with it: the next header, and little to copy.
inline constexpr std::size_t kPeek = 256;
/// One system call puts at most so much into a place; bounds what an announced size can do.
inline constexpr std::uint64_t kReceiveMax = 4 << 20;
/// Messages that wait for room in the socket; above: Posted::again.
inline constexpr std::size_t kChunkSize = 128 << 10;
inline constexpr std::size_t kBacklogMax = 1 << 20;
static_assert(kChunkSize >= kMessageSizeMax + 8);
inline constexpr std::size_t kWritesMax = 1024;
/// A peer that follows the protocol has at most kWritesMax writes on the way.
inline constexpr std::size_t kIncompleteMax = 2 * kWritesMax;
/// Streams without expected stripes are looked at this rarely, for their end.
inline constexpr std::uint32_t kIdleStreamPolls = 1024;

}  // namespace weft::transport::tcp
