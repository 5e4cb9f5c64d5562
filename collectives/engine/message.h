#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/memory.h"

namespace weft::collectives::engine {

/// What the engines of two ranks say to each other. The numbers are those of the wire; never renumber.
enum class MessageKind : std::uint8_t {
  data = 0,       ///< Payload: bytes of the transfer from `offset` on.
  ready = 1,      ///< Receiver to sender: write there. Payload: PlaceWire with a landing number for the notice.
  available = 2,  ///< Sender to receiver: read from there. Payload: PlaceWire. `reserved`: a PlaceKind.
  consumed = 3,   ///< Receiver to sender: what was available has been read.
  progress = 4,   ///< `sequence` operations of `channel` are complete here (flow control).
  put = 5,        ///< Payload: bytes for window `transfer`; the offset there is `sequence` (low) and `slice` (high).
  signal = 6,     ///< A put to window `transfer` with a signal is visible once `sequence` writes have arrived there.
  mismatch = 7,   ///< The operation `sequence` is something else here. Payload: CallWire.
  fault = 8,  ///< The sender's communicator failed: `transfer` is the code, `sequence` 1 + the rank that it is about,
              ///< or 0. Payload: text.
  window_closing = 9,  ///< Nothing more goes to window `transfer`; `sequence` notices of it were sent in all.
};

/// Operations are numbered per channel: collectives for the whole communicator, sends and receives for each ordered
/// pair.
enum class Channel : std::uint8_t { collective = 0, point_to_point = 1 };

/// In front of every message. With a payload of 8 bytes it fits one cache line of the shared-memory ring.
struct MessageHeaderWire {
  std::uint8_t version = kVersion;
  MessageKind kind = MessageKind::data;
  Channel channel = Channel::collective;
  std::uint8_t reserved = 0;
  std::uint32_t sequence = 0;   ///< Which operation.
  std::uint32_t signature = 0;  ///< What the sender believes that operation is (Call::signature).
  std::uint32_t transfer = 0;   ///< The plan's transfer number.
  std::uint32_t slice = 0;      ///< Which slice of it.
  std::uint32_t offset = 0;     ///< data: where the payload starts in the slice, in bytes.

  static constexpr std::uint8_t kVersion = 1;
};
static_assert(sizeof(MessageHeaderWire) == 24);

/// How what is `available` can be had.
enum class PlaceKind : std::uint8_t {
  read = 0,    ///< By post_read.
  mapped = 1,  ///< By load_pointer.
  staged = 2,  ///< Only as a train of `data` messages, which the sender starts once it is told `ready`.
};

/// Where bytes are, or shall go, in the sender's memory.
struct PlaceWire {
  transport::RegionKey key;
  std::uint64_t offset = 0;
  std::uint32_t landing = 0;  ///< ready: the notice that the write shall carry.
  std::uint32_t reserved = 0;
};
static_assert(sizeof(PlaceWire) == 32);
/// `available` does without the landing, which keeps it in one cache line.
inline constexpr std::size_t kAvailableSize = 24;

/// A call as its caller sees it: what `mismatch` tells the other side.
struct CallWire {
  std::uint8_t version = 1;
  std::uint8_t collective = 0;
  std::uint8_t type = 0;
  std::uint8_t op = 0;
  std::uint32_t root = 0;
  std::uint64_t count = 0;
  std::uint64_t plan = 0;  ///< A number for the algorithm and its layout.
  std::uint8_t is_reply = 0;
  std::uint8_t reserved[7] = {};
};
static_assert(sizeof(CallWire) == 32);

inline constexpr std::size_t kFaultTextMax = 512;

template <class Wire>
std::span<const std::byte> bytes_of(const Wire& wire) noexcept {
  return std::as_bytes(std::span(&wire, 1));
}

}  // namespace weft::collectives::engine
