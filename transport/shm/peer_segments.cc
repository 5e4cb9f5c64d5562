#include "transport/shm/peer_segments.h"

#include <fmt/format.h>

namespace weft::transport::shm {

Result<std::byte*> PeerSegments::locate(const KeyContent& key, std::uint64_t offset, std::uint64_t size_bytes) {
  const Segment* segment = last_fd_ == key.fd ? last_ : nullptr;
  if (segment == nullptr || segment->id_bits != key.id_bits) {
    const auto found = segments_.find(key.fd);
    if (found != segments_.end() && found->second.id_bits == key.id_bits) {
      segment = &found->second;
    } else {
      WEFT_TRY_ASSIGN(segment, map(key));
    }
    last_ = segment;
    last_fd_ = key.fd;
  }
  const std::uint64_t from = key.offset + offset;
  if (from > segment->size_bytes || size_bytes > segment->size_bytes - from) {
    return Error{ErrorCode::out_of_range, "a shared region reaches over the end of its allocation"};
  }
  return segment->mapping.data() + kPageSize + from;
}

Result<const PeerSegments::Segment*> PeerSegments::map(const KeyContent& key) {
  drop_released();
  WEFT_TRY_ASSIGN(const Descriptor file, open_memory_file_of(pid_, key.fd, kPageSize));
  Segment segment;
  std::uint64_t id = 0;
  {
    WEFT_TRY_ASSIGN(const Mapping first_page, map_file(file.get(), 0, kPageSize, Populate::lazily));
    const auto& header = *reinterpret_cast<const SegmentHeader*>(first_page.data());
    if (header.magic != SegmentHeader::kMagic || header.owner != owner_ ||
        low_bits(header.id, kIdBits) != key.id_bits || (header.size_bytes >> kExtentBits) != 0) {
      return Error{ErrorCode::not_found, fmt::format("shared memory of process {} (fd {}) was released", pid_, key.fd)};
    }
    id = header.id;
    segment.size_bytes = header.size_bytes;
  }
  // Opened again with the size, which checks that the file is as long as its header says.
  const std::uint64_t file_size = kPageSize + whole_pages(segment.size_bytes);
  WEFT_TRY_ASSIGN(const Descriptor whole, open_memory_file_of(pid_, key.fd, file_size));
  WEFT_TRY_ASSIGN(segment.mapping, map_file(whole.get(), 0, file_size, Populate::now));
  if (reinterpret_cast<const SegmentHeader*>(segment.mapping.data())->id != id) {
    return Error{ErrorCode::not_found, fmt::format("shared memory of process {} (fd {}) was replaced", pid_, key.fd)};
  }
  segment.id_bits = key.id_bits;
  return &segments_.insert_or_assign(key.fd, std::move(segment)).first->second;
}

void PeerSegments::drop_released() noexcept {
  std::erase_if(segments_, [](const auto& entry) {
    return reinterpret_cast<const SegmentHeader*>(entry.second.mapping.data())
               ->released.load(std::memory_order_acquire) != 0;
  });
  last_ = nullptr;
  last_fd_ = -1;
}

}  // namespace weft::transport::shm
