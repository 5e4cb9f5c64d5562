#include "transport/tcp/socket.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace weft::transport::tcp {
namespace {

constexpr int kBacklog = 4096;  // The kernel cuts it to net.core.somaxconn; ranks of a large job come all at once.

sockaddr_in& as_v4(sockaddr_storage& storage) noexcept { return reinterpret_cast<sockaddr_in&>(storage); }
sockaddr_in6& as_v6(sockaddr_storage& storage) noexcept { return reinterpret_cast<sockaddr_in6&>(storage); }
const sockaddr_in& as_v4(const sockaddr_storage& s) noexcept { return reinterpret_cast<const sockaddr_in&>(s); }
const sockaddr_in6& as_v6(const sockaddr_storage& s) noexcept { return reinterpret_cast<const sockaddr_in6&>(s); }

void set_option(int fd, int level, int option, int value) noexcept {
  (void)::setsockopt(fd, level, option, &value, sizeof value);  // Tuning: the connection works without it.
}

Result<Fd> new_socket(int family) {
  Fd fd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.is_open()) return descriptor_error("opening a TCP socket", errno);
  return fd;
}

std::size_t open_descriptors() noexcept {
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  std::size_t count = 0;
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count > 3 ? count - 3 : 0;  // ".", "..", and the folder itself.
}

}  // namespace

void Fd::reset(int value) noexcept {
  if (value_ >= 0) ::close(value_);
  value_ = value;
}

Result<SocketAddress> SocketAddress::parse(std::string_view numeric, std::uint16_t port) {
  SocketAddress made;
  const std::string text(numeric);
  if (::inet_pton(AF_INET, text.c_str(), &as_v4(made.storage_).sin_addr) == 1) {
    as_v4(made.storage_).sin_family = AF_INET;
    as_v4(made.storage_).sin_port = htons(port);
    return made;
  }
  if (::inet_pton(AF_INET6, text.c_str(), &as_v6(made.storage_).sin6_addr) == 1) {
    as_v6(made.storage_).sin6_family = AF_INET6;
    as_v6(made.storage_).sin6_port = htons(port);
    return made;
  }
  return Error{ErrorCode::malformed, fmt::format("'{}' is not a numeric IP address", numeric)};
}

SocketAddress SocketAddress::local_of(int fd) noexcept {
  SocketAddress made;
  socklen_t size = sizeof made.storage_;
  (void)::getsockname(fd, reinterpret_cast<sockaddr*>(&made.storage_), &size);
  return made;
}

SocketAddress SocketAddress::peer_of(int fd) noexcept {
  SocketAddress made;
  socklen_t size = sizeof made.storage_;
  (void)::getpeername(fd, reinterpret_cast<sockaddr*>(&made.storage_), &size);
  return made;
}

void SocketAddress::encode(ByteWriter& writer) const {
  const bool is_v4 = family() == AF_INET;
  writer.number(static_cast<std::uint8_t>(is_v4 ? 4 : 6)).number(port());
  if (is_v4) {
    writer.raw(std::as_bytes(std::span(&as_v4(storage_).sin_addr, 1)));
  } else {
    writer.raw(std::as_bytes(std::span(&as_v6(storage_).sin6_addr, 1)));
  }
}

Result<SocketAddress> SocketAddress::decode(ByteReader& reader) {
  SocketAddress made;
  const auto version = reader.number<std::uint8_t>();
  const auto port = reader.number<std::uint16_t>();
  if (version != 4 && version != 6) return Error{ErrorCode::malformed, "a tcp address is neither IPv4 nor IPv6"};
  const auto bytes = reader.raw(version == 4 ? 4 : 16);
  if (bytes.empty()) return Error{ErrorCode::malformed, "a tcp address is cut short"};
  if (version == 4) {
    as_v4(made.storage_).sin_family = AF_INET;
    as_v4(made.storage_).sin_port = htons(port);
    std::memcpy(&as_v4(made.storage_).sin_addr, bytes.data(), 4);
  } else {
    as_v6(made.storage_).sin6_family = AF_INET6;
    as_v6(made.storage_).sin6_port = htons(port);
    std::memcpy(&as_v6(made.storage_).sin6_addr, bytes.data(), 16);
  }
  return made;
}

std::string SocketAddress::text() const {
  char buffer[INET6_ADDRSTRLEN] = "?";
  if (family() == AF_INET) {
    ::inet_ntop(AF_INET, &as_v4(storage_).sin_addr, buffer, sizeof buffer);
    return fmt::format("{}:{}", buffer, port());
  }
  if (family() == AF_INET6) {
    ::inet_ntop(AF_INET6, &as_v6(storage_).sin6_addr, buffer, sizeof buffer);
    return fmt::format("[{}]:{}", buffer, port());
  }
  return "an unknown address";
}

std::uint16_t SocketAddress::port() const noexcept {
  return ntohs(family() == AF_INET ? as_v4(storage_).sin_port : as_v6(storage_).sin6_port);
}

socklen_t SocketAddress::size() const noexcept {
  return family() == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

Result<Fd> listen_on(const SocketAddress& address) {
  WEFT_TRY_ASSIGN(Fd fd, new_socket(address.family()));
  set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.family() == AF_INET6) set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  if (::bind(fd.get(), address.get(), address.size()) != 0) {
    const int error = errno;
    const ErrorCode code = error == EADDRNOTAVAIL ? ErrorCode::not_found
                           : error == EADDRINUSE  ? ErrorCode::address_in_use
                                                  : ErrorCode::system;
    return Error::from_errno(code, fmt::format("listening for TCP on {}", address.text()), error,
                             "It must be an address of an interface of this host");
  }
  if (::listen(fd.get(), kBacklog) != 0) {
    return Error::from_errno(ErrorCode::system, fmt::format("listening for TCP on {}", address.text()), errno);
  }
  return fd;
}

Result<Fd> start_connect(const SocketAddress& address, std::uint64_t buffer_bytes) {
  WEFT_TRY_ASSIGN(Fd fd, new_socket(address.family()));
  tune(fd.get(), buffer_bytes);  // Before connect: the buffer decides the window scale.
  if (::connect(fd.get(), address.get(), address.size()) != 0 && errno != EINPROGRESS) {
    return Error::from_errno(ErrorCode::peer_failed, fmt::format("connecting to {}", address.text()), errno);
  }
  return fd;
}

void tune(int fd, std::uint64_t buffer_bytes) noexcept {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  // A host that vanished is noticed on an idle link after 15 s + 4 * 5 s; a process that is only stopped still answers.
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
  if (buffer_bytes > 0) {
    const int size = static_cast<int>(std::min<std::uint64_t>(buffer_bytes, 1 << 30));
    set_option(fd, SOL_SOCKET, SO_SNDBUF, size);
    set_option(fd, SOL_SOCKET, SO_RCVBUF, size);
  }
}

int take_socket_error(int fd) noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

void raise_descriptor_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);  // check_descriptors says if it is still too low.
}

Status check_descriptors(std::size_t more) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  const std::size_t needed = open_descriptors() + more;
  if (needed <= limit.rlim_cur) return {};
  return Error{ErrorCode::limit_exceeded,
               fmt::format("the limit of open files is {}, and {} are needed for TCP connections to all peers",
                           limit.rlim_cur, needed),
               fmt::format("Raise it: ulimit -n {} (hard limit: {})", needed, limit.rlim_max)};
}

Error descriptor_error(std::string doing, int system_errno) {
  if (system_errno == EMFILE || system_errno == ENFILE) {
    const std::size_t needed = open_descriptors() + 1;
    return Error::from_errno(ErrorCode::limit_exceeded, std::move(doing), system_errno,
                             fmt::format("More than {} open files are needed: raise ulimit -n", needed));
  }
  return Error::from_errno(ErrorCode::system, std::move(doing), system_errno);
}

}  // namespace weft::transport::tcp
