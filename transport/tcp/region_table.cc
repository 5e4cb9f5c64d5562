#include "transport/tcp/region_table.h"

#include <span>

namespace weft::transport::tcp {
namespace {

std::uint64_t secure_seed() {
  std::uint64_t seed = 0;
  fill_secure_random(std::as_writable_bytes(std::span(&seed, 1)));
  return seed;
}

}  // namespace

RegionTable::RegionTable() : random_(secure_seed()) {}

Registration RegionTable::add(std::byte* base, std::uint64_t size_bytes, device::MemoryKind kind) {
  if (free_.empty()) {
    slots_.emplace_back();
    free_.reserve(slots_.capacity());  // So that remove() cannot fail.
    free_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  Slot& slot = slots_[index];
  slot.is_used = true;
  ++slot.generation;
  slot.registration = {.base = base,
                       .size_bytes = size_bytes,
                       .kind = kind,
                       .key = {.first = std::uint64_t{slot.generation} << 32 | index, .second = random_.next()},
                       .handle = index};
  return slot.registration;
}

bool RegionTable::remove(const Registration& registration) {
  if (registration.handle >= slots_.size()) return false;
  Slot& slot = slots_[registration.handle];
  if (!slot.is_used || slot.registration.key != registration.key) return false;
  slot.is_used = false;
  free_.push_back(static_cast<std::uint32_t>(registration.handle));
  return true;
}

std::byte* RegionTable::find(const RegionKey& key, std::uint64_t offset, std::uint64_t size_bytes) const noexcept {
  static std::byte nothing{};
  if (size_bytes == 0) return &nothing;
  const std::uint64_t index = key.first & 0xffffffffu;
  if (index >= slots_.size()) return nullptr;
  const Slot& slot = slots_[index];
  if (!slot.is_used || slot.registration.key != key) return nullptr;
  const std::uint64_t size = slot.registration.size_bytes;
  if (offset > size || size_bytes > size - offset) return nullptr;
  return slot.registration.base + offset;
}

}  // namespace weft::transport::tcp
