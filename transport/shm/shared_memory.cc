#include "transport/shm/shared_memory.h"

#include <map>
#include <mutex>
#include <new>

#include "base/random.h"

namespace weft::transport::shm {
namespace {

struct Segment {
  Descriptor file;
  Mapping mapping;
  std::uint64_t id = 0;
  std::uint64_t size_bytes = 0;
  [[nodiscard]] SegmentHeader& header() const noexcept { return *reinterpret_cast<SegmentHeader*>(mapping.data()); }
};

/// All allocations of the process, by the address of the user's first byte. Never destroyed: threads may still look
/// things up while the process ends.
struct Registry {
  std::mutex mutex;
  std::map<const std::byte*, Segment> segments;
  std::uint64_t last_id = 0;
};

Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

}  // namespace

const ProcessToken& process_token() noexcept {
  static const ProcessToken kToken = [] {
    ProcessToken fresh;
    fill_secure_random(fresh);
    return fresh;
  }();
  return kToken;
}

Result<std::byte*> allocate_shared_memory(std::uint64_t size_bytes) noexcept {
  if (size_bytes == 0) return Error{ErrorCode::invalid_argument, "allocate shared memory of no bytes"};
  if (size_bytes > (std::uint64_t{1} << 62)) {
    return Error{ErrorCode::limit_exceeded, "allocate shared memory: more bytes than addresses"};
  }
  const std::uint64_t file_size = kPageSize + whole_pages(size_bytes);
  Segment segment;
  WEFT_TRY_ASSIGN(segment.file, create_memory_file("weft-memory", file_size));
  WEFT_TRY_ASSIGN(segment.mapping, map_file(segment.file.get(), 0, file_size, Populate::now));
  segment.size_bytes = size_bytes;
  auto* header = new (segment.mapping.data()) SegmentHeader;
  header->owner = process_token();
  header->size_bytes = size_bytes;

  std::byte* memory = segment.mapping.data() + kPageSize;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  segment.id = header->id = ++all.last_id;
  all.segments.emplace(memory, std::move(segment));
  return memory;
}

bool release_shared_memory(std::byte* memory) noexcept {
  Registry& all = registry();
  std::map<const std::byte*, Segment>::node_type removed;  // Unmapped after the lock is gone.
  {
    const std::lock_guard lock(all.mutex);
    removed = all.segments.extract(memory);
  }
  if (removed.empty()) return false;
  removed.mapped().header().released.store(1, std::memory_order_release);
  return true;
}

std::optional<SharedPlace> find_shared_memory(const std::byte* base, std::uint64_t size_bytes) noexcept {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  auto after = all.segments.upper_bound(base);
  if (after == all.segments.begin()) return std::nullopt;
  const auto& [first, segment] = *--after;
  const auto offset = static_cast<std::uint64_t>(base - first);
  if (offset > segment.size_bytes || size_bytes > segment.size_bytes - offset) return std::nullopt;
  return SharedPlace{segment.file.get(), segment.id, offset};
}

}  // namespace weft::transport::shm
