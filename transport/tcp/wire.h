#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

// What travels on a TCP connection of Weft; docs/wire_format.md describes it. Little-endian, no padding.
namespace weft::transport::tcp {

inline constexpr std::uint32_t kAddressVersion = 1;
inline constexpr std::uint32_t kIdentityVersion = 1;
inline constexpr std::uint8_t kFrameVersion = 1;

/// Names one transport of one process, so that the same rank of another life is told apart.
using TransportId = std::array<std::byte, 16>;

/// From the connecting side, after the handshake: who calls, and whom.
struct IdentityWire {
  std::uint32_t version = kIdentityVersion;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t stream_index = 0;
  std::uint32_t num_streams = 0;
  TransportId from_id{};
  TransportId to_id{};
};
static_assert(sizeof(IdentityWire) == 52);

/// The answer: who is there, and whether the call was for it.
struct VerdictWire {
  std::uint32_t version = kIdentityVersion;
  std::uint32_t is_accepted = 0;
  std::uint32_t rank = 0;
  TransportId id{};
};
static_assert(sizeof(VerdictWire) == 28);

/// From the connecting side: this connection is the one in use, of those it tried. Frames follow.
struct ChosenWire {
  std::uint32_t version = kIdentityVersion;
};
static_assert(sizeof(ChosenWire) == 4);

enum class FrameKind : std::uint8_t { message = 1, write = 2, close = 3 };
inline constexpr std::uint16_t kHasNotice = 1;  ///< Flag of a write.

/// In front of everything on a connection.
struct FrameWire {
  std::uint8_t version = kFrameVersion;
  FrameKind kind = FrameKind::message;
  std::uint16_t flags = 0;
  std::uint32_t size_bytes = 0;  ///< Of the payload that follows the headers.
};
static_assert(sizeof(FrameWire) == 8);

/// Follows the FrameWire of a write: a stripe of it, or all of it.
struct WriteWire {
  std::uint64_t region_first = 0;
  std::uint64_t region_second = 0;
  std::uint64_t offset = 0;       ///< Of this stripe in the region.
  std::uint64_t total_bytes = 0;  ///< Of the whole write; the notice is due when as many arrived.
  std::uint32_t write_id = 0;     ///< Same for all stripes of a write.
  std::uint32_t notice = 0;
};
static_assert(sizeof(WriteWire) == 40);

}  // namespace weft::transport::tcp
