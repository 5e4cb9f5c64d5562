#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace weft::tools {

/// A file descriptor that is closed with it.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(other.release()) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept;
  ~OwnedFd() { close(); }
  void close() noexcept;
  int release() noexcept;
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// Two ends of a pipe, both closed on exec.
struct Pipe {
  OwnedFd read;
  OwnedFd write;
  /// Errors: limit_exceeded — too many open files; system.
  static Result<Pipe> create();
};

/// How one process is started.
struct ProcessSpec {
  std::vector<std::string> command;      ///< The first word is a path.
  std::vector<std::string> environment;  ///< "NAME=value".
  int stdin_fd = -1;                     ///< -1 is /dev/null.
  std::optional<std::uint32_t> core;     ///< The only one that it may run on.
};

/// A process and what it writes.
struct Process {
  pid_t pid = -1;
  OwnedFd output;  ///< Not blocking. The same for the next.
  OwnedFd error;
};

/// Starts a process that leads a group of its own, has the default signal handling, and gets SIGKILL when this process
/// ends, however it ends. Call it from the thread that lives longest: the kernel takes that thread for the parent.
/// Errors: limit_exceeded, system. A command that cannot be executed says so on its error output and exits with 127.
Result<Process> start_process(const ProcessSpec& spec);

/// A process that outlives this one for a moment to end what it leaves behind: if this process ends without having
/// called dismiss(), every group that was entrusted gets SIGKILL. (The kernel's own signal at a parent's death reaches
/// only direct children, not theirs.)
class Keeper {
 public:
  /// Call it before threads are started. Errors: system.
  static Result<Keeper> start();
  void entrust(pid_t group) noexcept;
  void dismiss() noexcept;

 private:
  Keeper(pid_t pid, OwnedFd wire) : pid_(pid), wire_(std::move(wire)) {}
  pid_t pid_;
  OwnedFd wire_;
};

}  // namespace weft::tools
