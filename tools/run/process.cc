#include "tools/run/process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <cerrno>
#include <cstring>
#include <utility>

#include "tools/commands.h"

namespace weft::tools {
namespace {

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

void reset_signals() noexcept {
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// The child between fork and exec. Other threads may have held any lock at the fork, so only system calls here.
[[noreturn]] void become(char* const* command, char* const* environment, const ProcessSpec& spec, int null_fd,
                         int output_fd, int error_fd, pid_t parent) noexcept {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kExitSignal + SIGKILL);  // It died before the line above could matter.
  dup2(spec.stdin_fd >= 0 ? spec.stdin_fd : null_fd, STDIN_FILENO);
  dup2(output_fd, STDOUT_FILENO);
  dup2(error_fd, STDERR_FILENO);
  if (spec.core) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(*spec.core, &cores);
    sched_setaffinity(0, sizeof cores, &cores);
  }
  reset_signals();
  execve(command[0], command, environment);
  const char* const reason = strerrordesc_np(errno);
  const char* const parts[] = {"weft run: cannot run ", command[0], ": ", reason == nullptr ? "?" : reason, "\n"};
  for (const char* part : parts) {
    if (write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  }
  _exit(kExitNotFound);
}

[[noreturn]] void keep(int wire) noexcept {
  setsid();  // The terminal's signals are for the launcher.
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  // Nobody shall wait for the end of a pipe because of this process.
  const int null_fd = open("/dev/null", O_RDWR);
  for (int fd = 0; fd <= 2; ++fd) dup2(null_fd, fd);
  if (wire != 3) dup2(wire, 3);
  close_range(4, ~0U, 0);
  static pid_t groups[1U << 16];
  std::size_t num_groups = 0;
  pid_t next = 0;
  while (true) {
    const ssize_t got = read(3, &next, sizeof next);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof next) break;
    if (next == 0) _exit(0);
    if (num_groups < sizeof groups / sizeof groups[0]) groups[num_groups++] = next;
  }
  for (std::size_t i = 0; i < num_groups; ++i) kill(-groups[i], SIGKILL);
  _exit(0);
}

}  // namespace

OwnedFd& OwnedFd::operator=(OwnedFd&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = other.release();
  }
  return *this;
}

void OwnedFd::close() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

int OwnedFd::release() noexcept { return std::exchange(fd_, -1); }

Result<Pipe> Pipe::create() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) == 0) return Pipe{OwnedFd{fds[0]}, OwnedFd{fds[1]}};
  if (errno == EMFILE || errno == ENFILE) {
    return Error::from_errno(ErrorCode::limit_exceeded, "making a pipe", errno,
                             "raise the limit of open files (ulimit -n); every rank needs three");
  }
  return Error::from_errno(ErrorCode::system, "making a pipe", errno);
}

Result<Process> start_process(const ProcessSpec& spec) {
  WEFT_TRY_ASSIGN(Pipe output, Pipe::create());
  WEFT_TRY_ASSIGN(Pipe error, Pipe::create());
  const OwnedFd null_fd{open("/dev/null", O_RDONLY | O_CLOEXEC)};
  const std::vector<char*> command = pointers_to(spec.command);
  const std::vector<char*> environment = pointers_to(spec.environment);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    return Error::from_errno(ErrorCode::limit_exceeded, "starting a process", errno,
                             "look at ulimit -u and at the memory that is left");
  }
  if (pid == 0) {
    become(command.data(), environment.data(), spec, null_fd.get(), output.write.get(), error.write.get(), parent);
  }
  setpgid(pid, pid);  // Here too: a signal to the group must not come before the group exists.
  for (const int fd : {output.read.get(), error.read.get()}) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  return Process{pid, std::move(output.read), std::move(error.read)};
}

Result<Keeper> Keeper::start() {
  WEFT_TRY_ASSIGN(Pipe pipe, Pipe::create());
  const pid_t pid = fork();
  if (pid < 0) return Error::from_errno(ErrorCode::limit_exceeded, "starting a process", errno, "look at ulimit -u");
  if (pid == 0) {
    pipe.write.close();
    keep(pipe.read.get());
  }
  return Keeper{pid, std::move(pipe.write)};
}

void Keeper::entrust(pid_t group) noexcept {
  // A keeper that was killed cannot be told; the launcher ignores SIGPIPE.
  [[maybe_unused]] const ssize_t told = write(wire_.get(), &group, sizeof group);
}

void Keeper::dismiss() noexcept {
  if (!wire_.is_open()) return;
  entrust(0);
  wire_.close();
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace weft::tools
