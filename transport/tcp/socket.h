#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/wire.h"

namespace weft::transport::tcp {

/// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int value) noexcept : value_(value) {}
  Fd(Fd&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.value_, -1));
    return *this;
  }
  ~Fd() { reset(); }
  [[nodiscard]] int get() const noexcept { return value_; }
  [[nodiscard]] bool is_open() const noexcept { return value_ >= 0; }
  void reset(int value = -1) noexcept;

 private:
  int value_ = -1;
};

/// An IPv4 or IPv6 address and a port.
class SocketAddress {
 public:
  SocketAddress() = default;
  /// Errors: malformed — not a numeric address.
  static Result<SocketAddress> parse(std::string_view numeric, std::uint16_t port);
  static SocketAddress local_of(int fd) noexcept;
  static SocketAddress peer_of(int fd) noexcept;

  void encode(ByteWriter& writer) const;
  /// Errors: malformed, unsupported — another family.
  static Result<SocketAddress> decode(ByteReader& reader);

  /// "10.0.0.1:4000", "[fd00::1]:4000".
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::uint16_t port() const noexcept;
  [[nodiscard]] const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage_); }
  [[nodiscard]] socklen_t size() const noexcept;
  [[nodiscard]] int family() const noexcept { return storage_.ss_family; }

 private:
  sockaddr_storage storage_{};
};

/// A non-blocking socket that listens on exactly this address.
[[nodiscard]] Result<Fd> listen_on(const SocketAddress& address);
/// A non-blocking socket that is connecting; it becomes writable when that is settled (take_socket_error).
[[nodiscard]] Result<Fd> start_connect(const SocketAddress& address, std::uint64_t buffer_bytes);
/// Options of a connection that carries data. `buffer_bytes` 0 leaves the buffers to the kernel.
void tune(int fd, std::uint64_t buffer_bytes) noexcept;
/// SO_ERROR: the errno of an asynchronous failure, or 0.
[[nodiscard]] int take_socket_error(int fd) noexcept;

/// Raises the limit of open files to what the system allows.
void raise_descriptor_limit() noexcept;
/// Errors: limit_exceeded — `more` descriptors next to those that are open do not fit; names the number needed.
[[nodiscard]] Status check_descriptors(std::size_t more);
/// What a failed call for a new descriptor means.
[[nodiscard]] Error descriptor_error(std::string doing, int system_errno);

}  // namespace weft::transport::tcp
