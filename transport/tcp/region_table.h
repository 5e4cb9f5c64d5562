#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "transport/memory.h"

namespace weft::transport::tcp {

/// The registered regions of one transport. A key names a slot, its generation and a random number: the key of a
/// released region, or an invented one, finds nothing.
class RegionTable {
 public:
  RegionTable();
  [[nodiscard]] Registration add(std::byte* base, std::uint64_t size_bytes, device::MemoryKind kind);
  /// False: it is not registered.
  bool remove(const Registration& registration);

  /// The first byte of the slice if all of it is inside a living region, else null. A slice of no bytes is never null.
  [[nodiscard]] std::byte* find(const RegionKey& key, std::uint64_t offset, std::uint64_t size_bytes) const noexcept;

 private:
  struct Slot {
    Registration registration;
    std::uint32_t generation = 0;
    bool is_used = false;
  };
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  Random random_;
};

}  // namespace weft::transport::tcp
