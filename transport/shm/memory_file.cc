#include "transport/shm/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <limits>

#include <fmt/format.h>

#include "base/units.h"

namespace weft::transport::shm {
namespace {

/// Memory that can be had without hurting others: what /proc/meminfo calls available, and what the control group of a
/// container still allows. Without this check a size that no machine has would be reserved page by page until the
/// kernel kills someone.
std::uint64_t available_memory() {
  std::uint64_t available = std::numeric_limits<std::uint64_t>::max();
  std::ifstream meminfo("/proc/meminfo");
  std::uint64_t kib = 0;
  std::uint64_t swap_kib = 0;
  std::string unit;
  for (std::string name; meminfo >> name;) {
    std::uint64_t value = 0;
    meminfo >> value;
    std::getline(meminfo, unit);
    if (name == "MemAvailable:") kib = value;
    if (name == "SwapFree:") swap_kib = value;
  }
  if (kib > 0) available = (kib + swap_kib) * 1024;
  std::uint64_t limit = 0;
  std::uint64_t current = 0;
  // Absent, or "max", outside of a container with a limit: then the stream fails and nothing changes.
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> limit &&
      std::ifstream("/sys/fs/cgroup/memory.current") >> current) {
    available = std::min(available, limit - std::min(limit, current));
  }
  return available;
}

Error too_large(std::uint64_t needed, std::uint64_t available, const char* limit, const char* remedy) {
  return Error{ErrorCode::limit_exceeded,
               fmt::format("reserve shared memory: needed {} ({} bytes), available {} ({})", format_bytes(needed),
                           needed, format_bytes(available), limit),
               remedy};
}

/// Room that RLIMIT_FSIZE leaves; going over it raises a signal, so it is looked at first.
Status check_limits(std::uint64_t size_bytes, std::uint64_t additional_bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && size_bytes > limit.rlim_cur) {
    return too_large(size_bytes, limit.rlim_cur, "RLIMIT_FSIZE", "Raise the file size limit (ulimit -f)");
  }
  if (const std::uint64_t available = available_memory(); additional_bytes > available) {
    return too_large(additional_bytes, available, "free memory", "Use less memory or raise the container's limit");
  }
  return {};
}

}  // namespace

void Mapping::reset() noexcept {
  if (data_ != nullptr) ::munmap(data_, size_bytes_);
  data_ = nullptr;
  size_bytes_ = 0;
}

Result<Descriptor> create_memory_file(const char* label, std::uint64_t size_bytes) {
  WEFT_TRY(check_limits(size_bytes, size_bytes));
  Descriptor file{::memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  if (!file.is_open()) {
    const int err = errno;
    const bool is_limit = err == EMFILE || err == ENFILE || err == ENOMEM;
    return Error::from_errno(is_limit ? ErrorCode::limit_exceeded : ErrorCode::system, "memfd_create", err,
                             is_limit ? "Raise the limit of open files (ulimit -n)" : "");
  }
  if (::fchmod(file.get(), 0600) != 0) return Error::from_errno(ErrorCode::system, "fchmod of a memory file", errno);
  WEFT_TRY(grow_memory_file(file.get(), 0, size_bytes));
  // Peers rely on the size that they saw: a mapping that lost its file's end would be a SIGBUS.
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    return Error::from_errno(ErrorCode::system, "seal a memory file", errno);
  }
  return file;
}

Status grow_memory_file(int fd, std::uint64_t old_size_bytes, std::uint64_t new_size_bytes) {
  if (new_size_bytes <= old_size_bytes) return {};
  const std::uint64_t additional = new_size_bytes - old_size_bytes;
  WEFT_TRY(check_limits(new_size_bytes, additional));
  int status = 0;
  do {
    status = ::fallocate(fd, 0, static_cast<off_t>(old_size_bytes), static_cast<off_t>(additional));
  } while (status != 0 && errno == EINTR);
  if (status != 0) {
    const int err = errno;
    const bool is_limit = err == ENOSPC || err == ENOMEM || err == EFBIG;
    return Error::from_errno(
        is_limit ? ErrorCode::limit_exceeded : ErrorCode::system,
        fmt::format("reserve shared memory: needed {} ({} bytes)", format_bytes(additional), additional), err,
        "Use less memory or raise the container's limit");
  }
  return {};
}

Result<Mapping> map_file(int fd, std::uint64_t offset, std::size_t size_bytes, Populate populate) {
  const int flags = MAP_SHARED | (populate == Populate::now ? MAP_POPULATE : 0);
  void* data = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, flags, fd, static_cast<off_t>(offset));
  if (data == MAP_FAILED) {
    const int err = errno;
    return Error::from_errno(err == ENOMEM ? ErrorCode::limit_exceeded : ErrorCode::system,
                             fmt::format("map {} of shared memory", format_bytes(size_bytes)), err,
                             err == ENOMEM ? "Raise vm.max_map_count or the address space limit (ulimit -v)" : "");
  }
  return Mapping{static_cast<std::byte*>(data), size_bytes};
}

Result<Mapping> map_file_mirrored(int fd, std::uint64_t offset, std::size_t size_bytes, std::size_t mirrored_bytes) {
  const std::size_t whole = size_bytes + mirrored_bytes;
  void* reserved = ::mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) {
    return Error::from_errno(ErrorCode::limit_exceeded, fmt::format("reserve {} of addresses", format_bytes(whole)),
                             errno, "Raise the address space limit (ulimit -v)");
  }
  Mapping mapping{static_cast<std::byte*>(reserved), whole};
  const struct {
    std::size_t at, from, size;
  } parts[] = {{0, 0, size_bytes}, {size_bytes, size_bytes - mirrored_bytes, mirrored_bytes}};
  for (const auto& part : parts) {
    if (::mmap(mapping.data() + part.at, part.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd,
               static_cast<off_t>(offset + part.from)) == MAP_FAILED) {
      return Error::from_errno(ErrorCode::limit_exceeded, "map a message ring", errno, "Raise vm.max_map_count");
    }
  }
  return mapping;
}

Result<Descriptor> open_memory_file_of(std::uint32_t pid, int fd, std::uint64_t size_bytes) {
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, fd);
  Descriptor file{::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (!file.is_open()) {
    return Error::from_errno(ErrorCode::unsupported, "open " + path, errno,
                             "Processes of one job need the same user and must be dumpable to share memory");
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return Error::from_errno(ErrorCode::system, "fstat " + path, errno);
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (!S_ISREG(info.st_mode) || seals < 0 || (seals & F_SEAL_SHRINK) == 0 ||
      static_cast<std::uint64_t>(info.st_size) < size_bytes) {
    return Error{ErrorCode::unsupported, path + " is not a memory file of Weft"};
  }
  return file;
}

}  // namespace weft::transport::shm
