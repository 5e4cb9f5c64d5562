#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"
#include "transport/shm/descriptor.h"

namespace weft::transport::shm {

inline constexpr std::size_t kPageSize = 4096;

/// `size` rounded up to whole pages.
constexpr std::uint64_t whole_pages(std::uint64_t size) noexcept { return (size + kPageSize - 1) & ~(kPageSize - 1); }

/// Owns a range of mapped addresses.
class Mapping {
 public:
  Mapping() = default;
  Mapping(std::byte* data, std::size_t size_bytes) noexcept : data_(data), size_bytes_(size_bytes) {}
  ~Mapping() { reset(); }
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_bytes_(std::exchange(other.size_bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    if (this != &other) {
      reset();
      data_ = std::exchange(other.data_, nullptr);
      size_bytes_ = std::exchange(other.size_bytes_, 0);
    }
    return *this;
  }
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size_bytes() const noexcept { return size_bytes_; }
  [[nodiscard]] bool is_mapped() const noexcept { return data_ != nullptr; }
  void reset() noexcept;

 private:
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

/// A nameless file in memory of `size_bytes` (whole pages), all of it reserved: touching it can never end in SIGBUS.
/// Mode 0600, closed on exec, sealed against shrinking. Nothing of it outlives the processes that hold it.
/// Errors: limit_exceeded — memory, RLIMIT_FSIZE or RLIMIT_NOFILE are too low (needed and available in the message).
Result<Descriptor> create_memory_file(const char* label, std::uint64_t size_bytes);

/// Makes the file larger and reserves the new space. Errors: as create_memory_file.
Status grow_memory_file(int fd, std::uint64_t old_size_bytes, std::uint64_t new_size_bytes);

/// How to map.
enum class Populate : std::uint8_t {
  lazily,  ///< Pages are found when they are touched.
  now,     ///< All page table entries are made at once: no page fault later.
};

/// Maps [offset, offset + size) of the file for loads and stores that other processes see.
/// Errors: limit_exceeded (address space, mappings), system.
Result<Mapping> map_file(int fd, std::uint64_t offset, std::size_t size_bytes, Populate populate);

/// The same, with the last `mirrored_bytes` visible a second time behind the end, so that a range that runs over the
/// end of a ring is contiguous.
Result<Mapping> map_file_mirrored(int fd, std::uint64_t offset, std::size_t size_bytes, std::size_t mirrored_bytes);

/// Opens file descriptor `fd` of process `pid` by way of /proc, and checks that it is a memory file made by
/// create_memory_file of at least `size_bytes`.
/// Errors: the step that failed, for example "open /proc/123/fd/5 (Permission denied)".
Result<Descriptor> open_memory_file_of(std::uint32_t pid, int fd, std::uint64_t size_bytes);

}  // namespace weft::transport::shm
