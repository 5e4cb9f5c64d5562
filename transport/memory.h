#pragma once

#include <cstddef>
#include <cstdint>

#include "device/memory.h"

namespace weft::transport {

/// What a peer needs to reach a registered region: opaque to everyone but the transport that made it.
/// It travels inside messages, so it is small and of fixed size.
struct RegionKey {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  friend bool operator==(const RegionKey&, const RegionKey&) = default;
};
static_assert(sizeof(RegionKey) == 16);

/// A region that was registered with a transport. The caller keeps the memory alive until release_memory().
struct Registration {
  std::byte* base = nullptr;
  std::uint64_t size_bytes = 0;
  device::MemoryKind kind = device::MemoryKind::host;
  RegionKey key;             ///< For peers.
  std::uint64_t handle = 0;  ///< For the transport (lkey, table index).
};

/// Bytes of this process inside a registered region.
struct LocalSlice {
  const Registration* region = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
  [[nodiscard]] std::byte* data() const noexcept { return region->base + offset; }
};

/// Bytes of a peer's registered region.
struct RemoteSlice {
  RegionKey key;
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
};

}  // namespace weft::transport
