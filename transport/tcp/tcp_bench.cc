#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "transport/tcp/tcp.h"

// Two processes over TCP: round trip of a small message, and throughput of large writes.
//   tcp_bench [ADDRESS_A ADDRESS_B [NETWORK_NAMESPACE_OF_B]]
// With iperf3 installed, its throughput with as many streams is measured between the same addresses, in turns with
// ours.
namespace weft::transport::tcp {
namespace {

using Kind = Completion::Kind;

struct Peer {
  std::unique_ptr<Transport> transport;
  Endpoint* link = nullptr;

  Completion wait(Kind kind) const {
    std::array<Completion, 1> out;
    for (;;) {
      if (transport->poll(out) == 0) continue;
      if (out[0].kind == kind) return out[0];
      if (out[0].kind == Kind::failed) {
        fmt::print(stderr, "{}\n", link->failure()->message());
        std::exit(1);
      }
    }
  }
};

template <class T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "{}\n", result.error().message());
  std::exit(1);
}

Peer meet(Rank rank, const std::string& address, std::uint32_t streams, int pipe) {
  Peer me;
  me.transport = must(create_tcp({.rank = rank, .secret = {}, .listen_on = {address}, .streams = streams}));
  const auto mine = me.transport->address();
  std::vector<std::byte> theirs(512);
  if (::send(pipe, mine.data(), mine.size(), 0) < 0) std::exit(1);
  const ssize_t got = ::recv(pipe, theirs.data(), theirs.size(), 0);
  theirs.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  const PeerAddress peer{Rank{1 - rank.value()}, theirs};
  auto settled = me.transport->connect({&peer, 1}, Deadline::after(std::chrono::seconds(10)));
  me.link = must(std::move(settled[0].endpoint));
  return me;
}

void ping_pong(const Peer& me, bool begins) {
  constexpr int kRounds = 20'000;
  std::vector<double> times;
  const std::array<std::byte, 8> payload{};
  for (int i = 0; i < kRounds; ++i) {
    const Nanos begin = steady_clock().now();
    if (begins) (void)me.link->post_message(payload, {});
    (void)me.wait(Kind::message);
    if (!begins) (void)me.link->post_message(payload, {});
    times.push_back(static_cast<double>((steady_clock().now() - begin).count()) / 1000);
  }
  std::ranges::sort(times);
  if (begins)
    fmt::print("  8 B round trip: median {:.2f} us, 99% {:.2f} us\n", times[kRounds / 2], times[kRounds * 99 / 100]);
}

/// Gbit/s of `rounds` writes of 64 MiB, each answered by a message.
double throughput(const Peer& me, bool sends, int rounds) {
  constexpr std::size_t kSize = 64 << 20;
  static std::vector<std::byte> memory(kSize, std::byte{1});
  const Registration region = must(me.transport->register_memory(memory.data(), kSize, device::MemoryKind::host));
  double seconds = 0;
  if (sends) {
    RemoteSlice place{.key = {}, .offset = 0, .size_bytes = kSize};
    const Completion named = me.wait(Kind::message);
    std::copy_n(named.message.begin(), sizeof place.key, reinterpret_cast<std::byte*>(&place.key));
    const Nanos begin = steady_clock().now();
    for (int i = 0; i < rounds; ++i) {
      (void)me.link->post_write({&region, 0, kSize}, place, 1, Token{1});
      (void)me.wait(Kind::message);
    }
    seconds = static_cast<double>((steady_clock().now() - begin).count()) / 1e9;
  } else {
    (void)me.link->post_message(std::as_bytes(std::span(&region.key, 1)), {});
    for (int i = 0; i < rounds; ++i) {
      (void)me.wait(Kind::notice);
      (void)me.link->post_message({}, {});
    }
  }
  me.transport->release_memory(region);
  return static_cast<double>(kSize) * 8 * rounds / seconds / 1e9;
}

double iperf3(const std::string& address, const std::string& space, std::uint32_t streams) {
  const std::string inside = space.empty() ? "" : "ip netns exec " + space + " ";
  const std::string command = fmt::format(
      "{}iperf3 -s -1 -p 5299 -B {} >/dev/null 2>&1 & sleep 0.5; iperf3 -c {} -p 5299 -t 2 -l 1M -P {} -f g "
      "2>/dev/null | "
      "grep -E 'receiver' | tail -1 | grep -oE '[0-9.]+ Gbits' ; wait",
      inside, address, address, streams);
  FILE* output = ::popen(command.c_str(), "r");
  double value = 0;
  if (output == nullptr || std::fscanf(output, "%lf", &value) != 1) value = 0;
  if (output != nullptr) ::pclose(output);
  return value;
}

int run(const std::string& a, const std::string& b, const std::string& space) {
  for (const std::uint32_t streams : {1u, 2u, 4u}) {
    fmt::print("{} stream(s)\n", streams);
    std::fflush(stdout);
    int pipe[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pipe) != 0) return 1;
    const pid_t child = ::fork();
    if (child == 0) {
      if (!space.empty()) {
        const int fd = ::open(("/var/run/netns/" + space).c_str(), O_RDONLY | O_CLOEXEC);
        if (fd < 0 || ::setns(fd, CLONE_NEWNET) != 0) ::_exit(1);
      }
      const Peer me = meet(Rank{1}, b, streams, pipe[1]);
      ping_pong(me, false);
      for (int round = 0; round < 3; ++round) (void)throughput(me, false, 20);
      ::_exit(0);
    }
    const Peer me = meet(Rank{0}, a, streams, pipe[0]);
    ping_pong(me, true);
    for (int round = 0; round < 3; ++round) {
      // The peer busy-polls meanwhile, so iperf3 comes after its part in each round is over.
      const double ours = throughput(me, true, 20);
      ::kill(child, SIGSTOP);
      const double theirs = iperf3(b, space, streams);
      ::kill(child, SIGCONT);
      fmt::print("  64 MiB writes: {:.1f} Gbit/s; iperf3: {:.1f} Gbit/s; {:.0f} %\n", ours, theirs,
                 100 * ours / theirs);
      std::fflush(stdout);
    }
    ::waitpid(child, nullptr, 0);
    ::close(pipe[0]);
    ::close(pipe[1]);
  }
  return 0;
}

}  // namespace
}  // namespace weft::transport::tcp

int main(int argc, char** argv) {
  const std::string a = argc > 2 ? argv[1] : "127.0.0.1";
  const std::string b = argc > 2 ? argv[2] : "127.0.0.1";
  return weft::transport::tcp::run(a, b, argc > 3 ? argv[3] : "");
}
