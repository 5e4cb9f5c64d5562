#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "transport/shm/memory_file.h"
#include "transport/shm/shared_memory.h"

namespace weft::transport::shm {

/// Peers on one host that one transport can have.
inline constexpr std::size_t kPeersMax = 256;
/// Two lines: the prefetcher of x86 fetches lines in pairs, so words of different writers stay this far apart.
inline constexpr std::size_t kApart = 128;

/// Random bytes that a rank publishes in its address; finding them in a mapped segment proves whose segment it is.
using SegmentToken = std::array<std::byte, 32>;
/// What only who knows both tokens of a pair can say, one value per direction.
using PairProof = std::array<std::byte, 16>;

/// How the owner of a segment waits. Who takes the word from its value to `awake` owes the owner one wake-up.
enum class Sleep : std::uint32_t { awake = 0, in_futex = 1, on_fd = 2 };

/// Why the connection of a pair did not come about, or why it was revoked, for the other side's message.
using Reason = std::array<char, 160>;
void write_reason(Reason& reason, std::string_view text) noexcept;
std::string read_reason(const Reason& reason);

/// What a peer says to the owner of the segment when they connect; one entry per peer, written by the peer.
struct HelloWire {
  enum Stage : std::uint32_t { empty = 0, said = 1, judged = 2 };
  enum Decision : std::uint32_t { open = 0, agreed = 1, abandoned = 2 };
  enum Revoked : std::uint32_t { no = 0, before_close = 1, after_close = 2 };

  std::atomic<std::uint32_t> claimed;  ///< 0 -> 1 by the peer that takes this entry.
  std::atomic<std::uint32_t> stage;    ///< Everything up to `probe_value` is valid from `said`, the rest from `judged`.
  std::atomic<std::uint32_t> decision;  ///< Of the pair; used in the segment of the lower rank only.
  /// Of a connected pair: the peer's memory is not to be read any more (ShmEndpoint::revoke); `reason` says why.
  std::atomic<std::uint32_t> revoked;
  std::uint32_t rank;
  PairProof proof;
  std::uint64_t ring_offset;  ///< Where in the peer's segment the owner shall write its messages.
  std::uint64_t bulk_size;    ///< Of that ring; so is the next.
  std::uint32_t num_lines;
  std::uint32_t flagged;        ///< 1: the owner shall also set its byte in the peer's `pending`.
  std::int32_t bell_fd;         ///< The pipe that wakes the peer from poll or epoll.
  std::uint32_t plain_copy;     ///< The peer's PlainCopy choice.
  std::uint64_t probe_address;  ///< A word of the peer's private memory, and what is in it.
  std::uint64_t probe_value;
  ProcessToken process;       ///< Proves allocations of the peer's process.
  std::uint32_t accepted;     ///< 1: the peer can reach the owner; 0: `reason` says why not.
  std::uint32_t reads_plain;  ///< 1: the peer read the owner's probe word by process_vm_readv.
  Reason reason;
};

/// Left by the owner of a segment for a peer that it cannot reach, so that the peer need not wait for its deadline.
struct RefusalWire {
  std::atomic<std::uint32_t> is_valid;
  PairProof proof;
  Reason reason;
};

/// The first bytes of a rank's control segment. Rings of messages follow from kHeaderSize on.
struct ControlHeader {
  static constexpr std::uint64_t kMagic = 0x3230676e69727477ULL;
  std::uint64_t magic;
  SegmentToken token;
  std::uint32_t has_barrier;           ///< The owner's process takes part in the asymmetric barrier (doorbell.h).
  std::atomic<std::uint32_t> leaving;  ///< 1: the transport is gone, though its process may live on.

  alignas(kApart) std::atomic<Sleep> sleep;
  /// Byte `i` is set by the peer of entry `i` after a message if its hello was told to (many peers on this host).
  alignas(kApart) std::array<std::atomic<std::uint8_t>, kPeersMax> pending;
  alignas(kApart) std::array<HelloWire, kPeersMax> hellos;
  std::array<RefusalWire, kPeersMax> refusals;
};
inline constexpr std::uint64_t kHeaderSize = whole_pages(sizeof(ControlHeader));

static_assert(std::atomic<std::uint8_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free &&
              std::atomic<std::uint64_t>::is_always_lock_free && sizeof(std::atomic<Sleep>) == 4);

/// A message of up to kInlineMax bytes, or the announcement of a longer one, in one cache line.
struct alignas(128) Line {
  static constexpr std::size_t kInlineMax = 120;
  /// sequence:32 | kind:4 | size:28, stored last.
  std::atomic<std::uint64_t> control;
  std::array<std::byte, kInlineMax> content;
};
static_assert(sizeof(Line) == 128);

/// What the reader of a ring tells its writer, and the other way round: words beside the ring.
struct RingHeader {
  alignas(kApart) std::atomic<std::uint64_t> lines_returned;  ///< By the reader, lazily; so is the next.
  std::atomic<std::uint64_t> bulk_returned;
  alignas(kApart) std::atomic<std::uint32_t> is_writer_waiting;  ///< The writer found no room.
};
static_assert(sizeof(RingHeader) <= kPageSize);

/// The sizes of one ring: [RingHeader, one page][lines][bulk, mapped twice].
struct RingGeometry {
  std::uint32_t num_lines = 0;  ///< A power of two, at least 64 (a page).
  std::uint64_t bulk_size = 0;  ///< A power of two, at least 32 KiB.

  [[nodiscard]] constexpr std::uint64_t lines_size() const noexcept { return std::uint64_t{num_lines} * sizeof(Line); }
  [[nodiscard]] constexpr std::uint64_t file_size() const noexcept { return kPageSize + lines_size() + bulk_size; }
  /// Half of the smallest bulk area (16 KiB), a quarter of larger ones: the reader has one message while the next
  /// comes.
  [[nodiscard]] constexpr std::size_t message_size_max() const noexcept {
    return bulk_size <= (std::size_t{64} << 10) ? bulk_size / 2 : bulk_size / 4;
  }
  [[nodiscard]] constexpr bool is_valid() const noexcept {
    const auto is_power_of_two = [](std::uint64_t n) { return n != 0 && (n & (n - 1)) == 0; };
    return is_power_of_two(num_lines) && num_lines >= 64 && num_lines <= (1u << 20) && is_power_of_two(bulk_size) &&
           bulk_size >= (32u << 10) && bulk_size <= (1u << 27);
  }
};

/// The rings of a rank with `num_peers` peers on its host take about 8 MiB together, whatever their number.
constexpr RingGeometry ring_geometry(std::size_t num_peers) noexcept {
  // 512 KiB for few peers: one ring each way fills a second-level cache of 1 MiB and no more.
  // A line for each KiB of bulk: messages of that average size use up both at the same time.
  std::uint64_t bulk = std::uint64_t{512} << 10;
  while (bulk > (std::uint64_t{32} << 10) && bulk * num_peers > (std::uint64_t{8} << 20)) bulk /= 2;
  return {.num_lines = static_cast<std::uint32_t>(bulk >> 10) < 64 ? 64 : static_cast<std::uint32_t>(bulk >> 10),
          .bulk_size = bulk};
}
static_assert(ring_geometry(1).is_valid() && ring_geometry(kPeersMax).is_valid());
static_assert(ring_geometry(kPeersMax).message_size_max() >= (16u << 10));

}  // namespace weft::transport::shm
