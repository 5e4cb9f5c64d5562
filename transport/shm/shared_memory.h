#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "transport/shm/memory_file.h"

namespace weft::transport::shm {

/// Zeroed memory that processes of this host can map once they are told where it is (device::MemoryKind::shared).
/// Aligned to 4096 bytes, all of it reserved. No name anywhere: it is gone with the last process that uses it.
/// Thread: any.
/// Errors: invalid_argument (no bytes); limit_exceeded, with the needed and the available bytes.
Result<std::byte*> allocate_shared_memory(std::uint64_t size_bytes) noexcept;

/// Gives memory of allocate_shared_memory back. False if `memory` does not begin such an allocation. Thread: any.
/// Memory: peers that still map it keep their mapping, no more.
bool release_shared_memory(std::byte* memory) noexcept;

/// Where bytes lie inside an allocation of this process.
struct SharedPlace {
  int fd = -1;               ///< The memory file, for peers to open.
  std::uint64_t id = 0;      ///< Never used twice in a process, so a reused fd cannot be taken for the old one.
  std::uint64_t offset = 0;  ///< From the allocation's first byte.
};

/// Finds the allocation that holds all of [base, base + size_bytes); nullopt if none does. Thread: any.
std::optional<SharedPlace> find_shared_memory(const std::byte* base, std::uint64_t size_bytes) noexcept;

/// Random bytes that identify this process's allocations; peers compare them with the header page. Thread: any.
using ProcessToken = std::array<std::byte, 16>;
const ProcessToken& process_token() noexcept;

/// The first page of an allocation's memory file; the bytes for the user follow.
struct SegmentHeader {
  static constexpr std::uint64_t kMagic = 0x3130677365747765ULL;
  std::uint64_t magic = kMagic;
  std::uint64_t id = 0;
  ProcessToken owner{};
  std::uint64_t size_bytes = 0;  ///< Of the user's bytes.
  std::atomic<std::uint32_t> released{0};
};
static_assert(sizeof(SegmentHeader) <= kPageSize);

}  // namespace weft::transport::shm
