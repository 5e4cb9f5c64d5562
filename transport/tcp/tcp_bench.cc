#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
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

/// A small message is answered within the spin of a waiting rank; a large one is worth a sleep where cores are shared.
constexpr int kSpin = 20'000;
constexpr int kSleepSoon = 2;

struct Peer {
  std::unique_ptr<Transport> transport;
  Endpoint* link = nullptr;

  /// Polls so often without a result, then sleeps, as a waiting rank does.
  Completion wait(Kind kind, int polls_max) const {
    std::array<Completion, 1> out;
    for (int polls = 0;; ++polls) {
      if (transport->poll(out) == 0) {
        if (polls < polls_max || !transport->arm(Wake::by_sleep)) continue;
        transport->sleep(std::chrono::seconds(1));
        transport->disarm();
        polls = 0;
        continue;
      }
      polls = 0;
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
    (void)me.wait(Kind::message, kSpin);
    if (!begins) (void)me.link->post_message(payload, {});
    times.push_back(static_cast<double>((steady_clock().now() - begin).count()) / 1000);
  }
  std::ranges::sort(times);
  if (begins)
    fmt::print("  8 B round trip: median {:.2f} us, 99% {:.2f} us\n", times[kRounds / 2], times[kRounds * 99 / 100]);
}

/// Of this process, or of its children that ended.
double cpu_seconds(int whose) {
  rusage usage{};
  ::getrusage(whose, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/// What moving bytes took: the processor time of both ends is steadier than the rate where others work too.
struct Rate {
  double gbit_per_second = 0;
  double cpu_seconds_per_gib = 0;
};

/// `rounds` writes of 64 MiB into the same place, each answered by a message.
Rate throughput(const Peer& me, bool sends, int rounds) {
  constexpr std::size_t kSize = 64 << 20;
  static std::vector<std::byte> memory(kSize, std::byte{1});
  const Registration region = must(me.transport->register_memory(memory.data(), kSize, device::MemoryKind::host));
  const double cpu_begin = cpu_seconds(RUSAGE_SELF);
  Rate rate;
  if (sends) {
    RemoteSlice place{.key = {}, .offset = 0, .size_bytes = kSize};
    const Completion named = me.wait(Kind::message, kSleepSoon);
    std::copy_n(named.message.begin(), sizeof place.key, reinterpret_cast<std::byte*>(&place.key));
    const Nanos begin = steady_clock().now();
    double cpu_of_peer = 0;
    for (int i = 0; i < rounds; ++i) {
      (void)me.link->post_write({&region, 0, kSize}, place, 1, Token{1});
      const Completion answer = me.wait(Kind::message, kSleepSoon);
      std::copy_n(answer.message.begin(), sizeof cpu_of_peer, reinterpret_cast<std::byte*>(&cpu_of_peer));
    }
    const double bytes = static_cast<double>(kSize) * rounds;
    rate.gbit_per_second = bytes * 8 / static_cast<double>((steady_clock().now() - begin).count());
    rate.cpu_seconds_per_gib = (cpu_of_peer + cpu_seconds(RUSAGE_SELF) - cpu_begin) / (bytes / (1 << 30));
  } else {
    (void)me.link->post_message(std::as_bytes(std::span(&region.key, 1)), {});
    for (int i = 0; i < rounds; ++i) {
      (void)me.wait(Kind::notice, kSleepSoon);
      const double cpu = cpu_seconds(RUSAGE_SELF) - cpu_begin;
      (void)me.link->post_message(std::as_bytes(std::span(&cpu, 1)), {});
    }
  }
  me.transport->release_memory(region);
  return rate;
}

Rate iperf3(const std::string& address, const std::string& space, std::uint32_t streams) {
  const std::string inside = space.empty() ? "" : "ip netns exec " + space + " ";
  const std::string command = fmt::format(
      "{}iperf3 -s -1 -p 5299 -B {} >/dev/null 2>&1 & sleep 0.5; iperf3 -c {} -p 5299 -t 2 -l 1M -P {} -f g "
      "2>/dev/null | "
      "grep -E 'receiver' | tail -1 | grep -oE '[0-9.]+ (GBytes|Gbits)' ; wait",
      inside, address, address, streams);
  const double cpu_begin = cpu_seconds(RUSAGE_CHILDREN);
  FILE* output = ::popen(command.c_str(), "r");
  double gib = 0;
  Rate rate;
  if (output == nullptr || std::fscanf(output, "%lf GBytes %lf", &gib, &rate.gbit_per_second) != 2) rate = {};
  if (output != nullptr) ::pclose(output);
  rate.cpu_seconds_per_gib = (cpu_seconds(RUSAGE_CHILDREN) - cpu_begin) / gib;
  return rate;
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
      // Stopped, so that the peer takes no part of the processor meanwhile.
      const Rate ours = throughput(me, true, 20);
      // Stopped, so that the peer takes no part of the processor meanwhile.
      ::kill(child, SIGSTOP);
      const Rate theirs = iperf3(b, space, streams);
      ::kill(child, SIGCONT);
      fmt::print(
          "  64 MiB writes: {:.1f} Gbit/s, {:.2f} s of processor per GiB; iperf3: {:.1f} Gbit/s, {:.2f} s; {:.0f} %\n",
          ours.gbit_per_second, ours.cpu_seconds_per_gib, theirs.gbit_per_second, theirs.cpu_seconds_per_gib,
          100 * ours.gbit_per_second / theirs.gbit_per_second);
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
