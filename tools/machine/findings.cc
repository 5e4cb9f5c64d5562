#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

#include "base/units.h"
#include "bootstrap/interfaces.h"
#include "tools/machine/machine.h"

namespace weft::tools {
namespace {

Finding limit_finding(const char* name, __rlimit_resource_t resource, rlim_t wanted, bool in_bytes, const char* why) {
  rlimit limit{};
  getrlimit(resource, &limit);
  const auto text = [&](rlim_t value) {
    if (value == RLIM_INFINITY) return std::string{"unlimited"};
    return in_bytes ? format_bytes(value) : std::to_string(value);
  };
  return {name, fmt::format("{} (hard {})", text(limit.rlim_cur), text(limit.rlim_max)),
          limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= wanted, why};
}

Finding shared_memory_room() {
  struct statvfs info {};
  if (statvfs("/dev/shm", &info) != 0) return {"/dev/shm", "none", true, "Weft does not need it"};
  const std::uint64_t free_bytes = static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
  return {"/dev/shm", fmt::format("{:.1f} GiB free", static_cast<double>(free_bytes) / (1U << 30)), true,
          "Weft does not use it; its shared memory has no name"};
}

Finding outcome(const char* name, bool works, int reason, const char* verdict) {
  return {name, works ? "works" : fmt::format("does not work: {}", std::strerror(reason)), works, verdict};
}

Finding memory_files() {
  const int fd = memfd_create("weft-info", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  const bool works = fd >= 0 && ftruncate(fd, 4096) == 0;
  const int reason = errno;
  if (fd >= 0) close(fd);
  return outcome("memfd_create", works, reason, "ranks of this host share memory through it; without it they use TCP");
}

/// Reads this process's memory from a child, as a rank reads a peer's, and by the same permission.
Finding reading_of_peers() {
  char secret[] = "weft";
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    char copy[sizeof secret] = {};
    const iovec local{copy, sizeof copy};
    const iovec remote{secret, sizeof secret};
    const bool works =
        process_vm_readv(parent, &local, 1, &remote, 1, 0) == sizeof copy && std::strcmp(copy, "weft") == 0;
    _exit(works ? 0 : errno);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return outcome("process_vm_readv", false, errno, "");
  return outcome(
      "process_vm_readv", status == 0, WEXITSTATUS(status),
      "plain buffers then cross through staging memory; buffers of weft_memory_allocate are not affected. In a "
      "container: --cap-add=SYS_PTRACE, or kernel.yama.ptrace_scope=0");
}

Finding process_descriptors() {
  const auto fd = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
  const int reason = errno;
  if (fd >= 0) close(fd);
  return outcome("pidfd_open", fd >= 0, reason, "the death of a peer on this host is noticed later without it");
}

}  // namespace

std::vector<Finding> system_findings() {
  constexpr rlim_t kFiles = 4096;
  std::vector<Finding> findings = {
      limit_finding("locked memory", RLIMIT_MEMLOCK, 64U << 20, true, "RDMA devices need more: ulimit -l unlimited"),
      limit_finding("open files", RLIMIT_NOFILE, kFiles, false, "a job of many ranks needs a few for each: ulimit -n"),
      shared_memory_room(),
      memory_files(),
      reading_of_peers(),
      process_descriptors(),
  };
  if (const auto interfaces = bootstrap::list_interfaces()) {
    const auto chosen = bootstrap::select_interfaces(*interfaces, "");
    for (const bootstrap::Interface& interface : *interfaces) {
      const bool is_chosen = chosen && !chosen->empty() && chosen->front().name == interface.name;
      findings.push_back({"interface " + interface.name, interface.address + (is_chosen ? " (the default choice)" : ""),
                          true, "WEFT_INTERFACE chooses another"});
    }
  } else {
    findings.push_back({"interfaces", interfaces.error().message(), false, ""});
  }
  return findings;
}

}  // namespace weft::tools
