#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "base/result.h"
#include "transport/shm/memory_file.h"
#include "transport/shm/region_key.h"
#include "transport/shm/shared_memory.h"

namespace weft::transport::shm {

/// The allocations of one peer process that are mapped here, by file descriptor.
class PeerSegments {
 public:
  PeerSegments() = default;
  PeerSegments(std::uint32_t pid, const ProcessToken& owner) : pid_(pid), owner_(owner) {}

  /// Where byte `offset` of the region `key` is mapped; maps the allocation on first use.
  /// Shape:  key.is_shared; the range was checked against the region's size.
  /// Errors: those of opening and mapping; not_found — the allocation is gone; out_of_range.
  /// Cost:   a hash look-up, or three system calls and a walk over the page tables the first time.
  Result<std::byte*> locate(const KeyContent& key, std::uint64_t offset, std::uint64_t size_bytes);

  /// Unmaps everything.
  void clear() noexcept {
    segments_.clear();
    last_ = nullptr;
  }
  [[nodiscard]] std::size_t num_mapped() const noexcept { return segments_.size(); }

 private:
  struct Segment {
    Mapping mapping;
    std::uint32_t id_bits = 0;
    std::uint64_t size_bytes = 0;
  };
  Result<const Segment*> map(const KeyContent& key);
  void drop_released() noexcept;

  std::uint32_t pid_ = 0;
  ProcessToken owner_{};
  std::unordered_map<int, Segment> segments_;
  const Segment* last_ = nullptr;  ///< The segment of `last_fd_`: consecutive calls are nearly always about one.
  int last_fd_ = -1;
};

}  // namespace weft::transport::shm
