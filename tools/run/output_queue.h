#pragma once

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string>
#include <string_view>

namespace weft::tools {

/// Bytes on their way to a descriptor that others share, written without ever blocking: a pager that is not read must
/// not keep a job from being ended.
class OutputQueue {
 public:
  explicit OutputQueue(int fd) : fd_(fd) {}

  void add(std::string_view bytes) {
    if (is_open_) waiting_.append(bytes);
  }
  /// Writes what can be written now.
  void flush() {
    std::size_t written = 0;
    while (is_open_ && written < waiting_.size()) {
      pollfd ready{fd_, POLLOUT, 0};
      if (poll(&ready, 1, 0) <= 0 || ready.revents == 0) break;
      // Where poll says yes, a pipe takes this much without blocking. (O_NONBLOCK would change it for everybody.)
      const ssize_t done =
          write(fd_, waiting_.data() + written, std::min<std::size_t>(waiting_.size() - written, PIPE_BUF));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0 && errno == EAGAIN) break;
      if (done < 0) is_open_ = false;
      written += done < 0 ? 0 : static_cast<std::size_t>(done);
    }
    waiting_.erase(0, written);
    if (!is_open_) waiting_.clear();
  }
  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] std::size_t size() const noexcept { return waiting_.size(); }
  /// False once nobody reads any more.
  [[nodiscard]] bool is_open() const noexcept { return is_open_; }

 private:
  int fd_;
  std::string waiting_;
  bool is_open_ = true;
};

}  // namespace weft::tools
