#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "device/memory.h"
#include "transport/transport.h"

namespace weft::collectives::engine {

/// Where the engine gets memory that peers can reach, and what it knows of memory it is given.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// Memory of the best kind for the transports in use; aligned to 4096. Errors: limit_exceeded.
  [[nodiscard]] virtual Result<std::byte*> allocate(std::size_t size_bytes) = 0;
  virtual void release(std::byte* memory) = 0;
  /// shared if the whole range came from such an allocation, else host.
  [[nodiscard]] virtual device::MemoryKind kind_of(const std::byte* memory, std::size_t size_bytes) const noexcept = 0;
};

/// Reusable buffers for scratch, landings and bounces, registered with every transport on first use.
///
/// Sizes are rounded up to powers of two and each size keeps its own free list, so a steady state allocates nothing.
/// Thread: loop.
class Arena {
 public:
  Arena(MemorySource& source, std::span<transport::Transport* const> transports);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// A buffer of at least `size_bytes` > 0, contents undefined. Errors: limit_exceeded.
  [[nodiscard]] Result<std::byte*> acquire(std::size_t size_bytes);
  void release(std::byte* buffer) noexcept;

  /// Where `address`, inside a buffer of this arena, is registered with transport `transport_index`.
  struct Place {
    const transport::Registration* region = nullptr;
    std::uint64_t offset = 0;
  };
  [[nodiscard]] Result<Place> place_of(const std::byte* address, std::size_t transport_index);

  /// Bytes taken from the source so far.
  [[nodiscard]] std::uint64_t footprint_bytes() const noexcept { return footprint_bytes_; }

 private:
  struct Block {
    std::byte* base = nullptr;
    std::size_t size_bytes = 0;
    std::uint32_t size_class = 0;
    std::vector<std::optional<transport::Registration>> registrations;  ///< By transport.
  };
  [[nodiscard]] Block* block_of(const std::byte* address) noexcept;

  MemorySource& source_;
  std::vector<transport::Transport*> transports_;
  std::deque<Block> blocks_;
  std::vector<Block*> by_address_;
  std::array<std::vector<std::byte*>, 64> free_;
  std::uint64_t footprint_bytes_ = 0;
};

}  // namespace weft::collectives::engine
