#include "tools/bench/limits.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "device/host/kernels.h"
#include "tools/bench/statistics.h"
#include "tools/run/process.h"

namespace weft::tools {
namespace {

constexpr std::size_t kLarge = 64U << 20;
constexpr int kRuns = 5;

template <class Work>
double best_us(int runs, Work work) {
  double best = 1e300;
  for (int i = 0; i < runs; ++i) {
    const Nanos start = steady_clock().now();
    work();
    best = std::min(best, static_cast<double>((steady_clock().now() - start).count()) / 1e3);
  }
  return best;
}

/// Memory that a peer could map as well.
class Mapping {
 public:
  Mapping() : base_(mmap(nullptr, kLarge, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)) {
    if (base_ != MAP_FAILED) std::memset(base_, 0, kLarge);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (base_ != MAP_FAILED) munmap(base_, kLarge);
  }
  [[nodiscard]] std::byte* get() const { return base_ == MAP_FAILED ? nullptr : static_cast<std::byte*>(base_); }

 private:
  void* base_;
};

bool read_all(int fd, std::byte* to, std::size_t size) {
  while (size > 0) {
    const ssize_t got = recv(fd, to, size, 0);
    if (got <= 0) return false;
    to += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

bool write_all(int fd, const std::byte* from, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = send(fd, from, size, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    from += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

struct Ends {
  OwnedFd client;
  OwnedFd server;
};

std::optional<Ends> loopback_pair() {
  const OwnedFd listener{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener.get(), generic, length) != 0 || listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), generic, &length) != 0) {
    return std::nullopt;
  }
  Ends ends{OwnedFd{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)}, OwnedFd{}};
  if (connect(ends.client.get(), generic, length) != 0) return std::nullopt;
  ends.server = OwnedFd{accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)};
  const int on = 1;
  for (const int fd : {ends.client.get(), ends.server.get()}) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return ends.server.is_open() ? std::optional{std::move(ends)} : std::nullopt;
}

std::optional<Limit> tcp_limit(std::byte* from, std::byte* to) {
  auto ends = loopback_pair();
  if (!ends) return std::nullopt;
  constexpr std::size_t kWord = 8;
  constexpr int kRounds = 300;
  std::thread peer{[&] {
    std::byte word[kWord];
    for (int i = 0; i < kRounds; ++i) {
      if (!read_all(ends->server.get(), word, kWord) || !write_all(ends->server.get(), word, kWord)) return;
    }
    for (int i = 0; i < kRuns; ++i) {
      if (!read_all(ends->server.get(), to, kLarge) || !write_all(ends->server.get(), word, kWord)) return;
    }
  }};
  std::byte word[kWord] = {};
  bool works = true;
  std::vector<double> round_trips;
  for (int i = 0; i < kRounds; ++i) {
    round_trips.push_back(best_us(1,
                                  [&] {
                                    works = works && write_all(ends->client.get(), word, kWord) &&
                                            read_all(ends->client.get(), word, kWord);
                                  }) *
                          1e3);
  }
  const double large_us = best_us(kRuns, [&] {
    works = works && write_all(ends->client.get(), from, kLarge) && read_all(ends->client.get(), word, kWord);
  });
  shutdown(ends->client.get(), SHUT_RDWR);
  peer.join();
  if (!works) return std::nullopt;
  return Limit{"TCP over loopback", "one blocking stream: 64 MiB one way, and half a round trip of 8 bytes",
               gigabytes_per_second(kLarge, large_us), times_of(round_trips).median_us / 2};
}

}  // namespace

std::vector<Limit> measure_limits() {
  std::vector<Limit> limits;
  const Mapping left;
  const Mapping right;
  if (left.get() == nullptr || right.get() == nullptr) return limits;
  limits.push_back({"memcpy",
                    "64 MiB, one core, best of 5",
                    gigabytes_per_second(kLarge, best_us(kRuns, [&] { std::memcpy(left.get(), right.get(), kLarge); })),
                    {}});
  const device::ReduceFunction reduce = device::reduce_function(device::DataType::f32, device::ReduceOp::sum);
  // The result replaces neither input, as in an all-reduce that is not in place.
  const Mapping result;
  if (result.get() != nullptr) {
    const double us = best_us(kRuns, [&] { reduce(result.get(), left.get(), right.get(), kLarge / sizeof(float)); });
    limits.push_back(
        {"mapped reduction", "64 MiB of f32 sums, one core, best of 5", gigabytes_per_second(kLarge, us), {}});
  }
  if (auto tcp = tcp_limit(left.get(), right.get())) limits.push_back(std::move(*tcp));
  return limits;
}

}  // namespace weft::tools
