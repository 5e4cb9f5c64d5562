// What this machine's memory and sockets allow for moving bytes: the lines that a bench result is held against.
//
//   limit_moves memcpy                                   copies of 64 MiB, in one process and in two at once
//   limit_moves tcp --listen ADDRESS PORT -e 64M         blocking sockets, one stream, half a round trip;
//   limit_moves tcp --connect ADDRESS PORT -e 64M        the connecting side prints
//
// Method and output: peer.h, one line per size.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "peer.h"

namespace {

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

void* map_shared(size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (at == MAP_FAILED) die("mmap");
  return at;
}

int run_memcpy() {
  constexpr size_t kBytes = 64 << 20;
  for (const int processes : {1, 2}) {
    auto* start = new (map_shared(64)) std::atomic<int>(0);
    auto* times = static_cast<double*>(map_shared(sizeof(double) * 2 * kMostIterations));
    const int rank = processes == 2 && fork() == 0 ? 1 : 0;
    std::vector<char> from(kBytes, 'a');
    std::vector<char> to(kBytes, 'b');
    start->fetch_add(1);
    while (start->load() < processes) sched_yield();
    constexpr int kIterations = 15;
    for (int i = 0; i < kIterations; ++i) {
      const uint64_t begin = now_ns();
      std::memcpy(to.data(), from.data(), kBytes);
      __asm__ volatile("" : : "r"(to.data()) : "memory");
      times[rank * kMostIterations + i] = static_cast<double>(now_ns() - begin);
    }
    if (rank == 1) std::_Exit(0);
    if (processes == 2) wait(nullptr);
    for (int i = 0; processes == 2 && i < kIterations; ++i) times[i] = std::max(times[i], times[kMostIterations + i]);
    print_row({"limit", processes == 1 ? "one" : "each of two", "memcpy", processes, "memory", kBytes}, times,
              kIterations, std::memcmp(to.data(), from.data(), kBytes) != 0);
  }
  return 0;
}

void transfer(int socket, char* buffer, size_t bytes, bool is_send) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t moved = is_send ? send(socket, buffer + done, bytes - done, MSG_NOSIGNAL)
                                  : recv(socket, buffer + done, bytes - done, MSG_WAITALL);
    if (moved <= 0) die(is_send ? "send" : "recv");
    done += static_cast<size_t>(moved);
  }
}

int run_tcp(bool is_listener, const char* address, int port, sizes sizes) {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<uint16_t>(port));
  if (inet_pton(AF_INET, address, &where.sin_addr) != 1) die("address");
  const auto* name = reinterpret_cast<const sockaddr*>(&where);
  int link = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  if (is_listener) {
    const int door = link;
    setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(door, name, sizeof where) != 0 || listen(door, 1) != 0) die("listen");
    link = accept(door, nullptr, nullptr);
    if (link < 0) die("accept");
  } else {
    for (int tries = 0; connect(link, name, sizeof where) != 0; ++tries) {
      if (tries == 500) die("connect");
      close(link);
      usleep(10000);
      link = socket(AF_INET, SOCK_STREAM, 0);
    }
  }
  setsockopt(link, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  std::vector<char> buffer(sizes.end_bytes);
  std::vector<double> times(kMostIterations);
  for (size_t bytes = sizes.begin_bytes; bytes <= sizes.end_bytes; bytes *= sizes.factor) {
    std::fill_n(buffer.begin(), bytes, is_listener ? '\0' : 'w');
    const auto once = [&] {
      const uint64_t from = now_ns();
      transfer(link, buffer.data(), bytes, !is_listener);
      transfer(link, buffer.data(), bytes, is_listener);
      return static_cast<double>(now_ns() - from) / 2;
    };
    double each = 0;
    for (int i = 0; i < kWarmUps; ++i) each = once();
    int32_t iterations = iterations_for(static_cast<uint64_t>(2 * each));
    transfer(link, reinterpret_cast<char*>(&iterations), sizeof iterations, !is_listener);
    for (int i = 0; i < iterations; ++i) times[static_cast<size_t>(i)] = once();
    if (!is_listener) {
      const auto wrong = static_cast<size_t>(std::count_if(buffer.begin(), buffer.begin() + static_cast<long>(bytes),
                                                           [](char byte) { return byte != 'w'; }));
      print_row({"limit", "blocking sockets", "ping_pong", 2, "tcp", bytes}, times.data(), iterations, wrong);
    }
  }
  close(link);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const std::string side = argc > 4 ? argv[2] : "";
  if (what == "memcpy") return run_memcpy();
  if (what == "tcp" && (side == "--listen" || side == "--connect")) {
    return run_tcp(side == "--listen", argv[3], std::atoi(argv[4]), parse_sizes(argc, argv));
  }
  std::fprintf(stderr, "usage: limit_moves memcpy | tcp --listen|--connect ADDRESS PORT [-b -e -f]\n");
  return 64;
}
