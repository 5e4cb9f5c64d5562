#include "collectives/engine/arena.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace weft::collectives::engine {
namespace {

/// Buffers are carved from blocks of at least this size, so that small ones share a registration.
constexpr std::size_t kBlockMin = std::size_t{1} << 20;
constexpr std::size_t kBufferMin = 4096;

}  // namespace

Arena::Arena(MemorySource& source, std::span<transport::Transport* const> transports)
    : source_(source), transports_(transports.begin(), transports.end()) {}

Arena::~Arena() {
  for (Block& block : blocks_) {
    for (std::size_t index = 0; index < transports_.size(); ++index) {
      if (block.registrations[index]) transports_[index]->release_memory(*block.registrations[index]);
    }
    source_.release(block.base);
  }
}

Result<std::byte*> Arena::acquire(std::size_t size_bytes) {
  const std::size_t rounded = std::bit_ceil(std::max(size_bytes, kBufferMin));
  const auto size_class = static_cast<std::uint32_t>(std::bit_width(rounded) - 1);
  std::vector<std::byte*>& free = free_[size_class];
  if (free.empty()) {
    const std::size_t block_bytes = std::max(rounded, kBlockMin);
    WEFT_TRY_ASSIGN(std::byte * base, source_.allocate(block_bytes));
    Block& block = blocks_.emplace_back(
        Block{base, block_bytes, size_class, std::vector<std::optional<transport::Registration>>(transports_.size())});
    const auto position = std::upper_bound(by_address_.begin(), by_address_.end(), base,
                                           [](const std::byte* address, const Block* b) { return address < b->base; });
    by_address_.insert(position, &block);
    footprint_bytes_ += block_bytes;
    free.reserve(free.capacity() + block_bytes / rounded);
    for (std::size_t offset = block_bytes; offset >= rounded; offset -= rounded)
      free.push_back(base + offset - rounded);
  }
  std::byte* buffer = free.back();
  free.pop_back();
  return buffer;
}

void Arena::release(std::byte* buffer) noexcept {
  Block* block = block_of(buffer);
  WEFT_CHECK(block != nullptr, "a buffer goes back to the arena it came from");
  free_[block->size_class].push_back(
      buffer);  // Cannot allocate: acquire() reserved room for every buffer of the class.
}

Arena::Block* Arena::block_of(const std::byte* address) noexcept {
  auto next = std::upper_bound(by_address_.begin(), by_address_.end(), address,
                               [](const std::byte* wanted, const Block* block) { return wanted < block->base; });
  if (next == by_address_.begin()) return nullptr;
  Block* block = *std::prev(next);
  return address < block->base + block->size_bytes ? block : nullptr;
}

Result<Arena::Place> Arena::place_of(const std::byte* address, std::size_t transport_index) {
  Block* block = block_of(address);
  WEFT_CHECK(block != nullptr, "place_of is asked for buffers of this arena");
  std::optional<transport::Registration>& registration = block->registrations[transport_index];
  if (!registration) {
    const device::MemoryKind kind = source_.kind_of(block->base, block->size_bytes);
    WEFT_TRY_ASSIGN(registration, transports_[transport_index]->register_memory(block->base, block->size_bytes, kind));
  }
  return Place{&*registration, static_cast<std::uint64_t>(address - block->base)};
}

}  // namespace weft::collectives::engine
