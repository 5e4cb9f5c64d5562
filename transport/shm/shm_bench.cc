// Two processes, each on its own core: latency and rate of messages, and the three ways of a large payload.
// Run: shm_bench [first core] [second core]. Prints one table; every figure is the best of several runs, because other
// work on the machine only ever adds time.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "transport/shm/shared_memory.h"
#include "transport/shm/shm_bench_pair.h"

namespace weft::transport::shm {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kRuns = 9;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void bench_flag(int first_core, int second_core) {
  struct Words {
    alignas(128) std::atomic<std::uint64_t> there;
    alignas(128) std::atomic<std::uint64_t> back;
  };
  auto* memory = *allocate_shared_memory(sizeof(Words));
  auto* words = reinterpret_cast<Words*>(memory);
  constexpr std::uint64_t kRounds = 20'000 * kRuns;
  const pid_t child = ::fork();
  pin(child == 0 ? second_core : first_core);
  if (child == 0) {
    for (std::uint64_t i = 1; i <= kRounds; ++i) {
      while (words->there.load(std::memory_order_acquire) != i) {
      }
      words->back.store(i, std::memory_order_release);
    }
    std::_Exit(0);
  }
  double best = 1;
  std::uint64_t i = 1;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = Clock::now();
    for (std::uint64_t k = 0; k < kRounds / kRuns; ++k, ++i) {
      words->there.store(i, std::memory_order_release);
      while (words->back.load(std::memory_order_acquire) != i) {
      }
    }
    best = std::min(best, seconds_since(start) * kRuns / kRounds);
  }
  ::waitpid(child, nullptr, 0);
  release_shared_memory(memory);
  fmt::print("bare flag: round trip {:.0f} ns\n", best * 1e9);
}

void bench_latency(const ShmOptions& options, int first_core, int second_core, std::size_t size) {
  const std::size_t rounds = size <= 1024 ? 20'000 : 2'000;
  std::vector<std::byte> payload(size);
  const auto echo = [&](Side& side) {
    std::vector<std::byte> copy(size);
    for (std::size_t i = 0; i < rounds * kRuns;) {
      side.receive([&](std::span<const std::byte> message) {
        std::memcpy(copy.data(), message.data(), size);
        side.send({}, copy);
        ++i;
      });
    }
    while (side.transport->poll(side.out) == 0) {  // The other side says when it has everything.
    }
  };
  const auto measure = [&](Side& side) {
    double best = 1;
    for (int run = 0; run < kRuns; ++run) {
      const auto start = Clock::now();
      for (std::size_t i = 0; i < rounds; ++i) {
        side.send({}, payload);
        side.receive([&](std::span<const std::byte> message) { std::memcpy(payload.data(), message.data(), size); });
      }
      best = std::min(best, seconds_since(start) / static_cast<double>(rounds));
    }
    side.send({}, {});
    fmt::print("message {:>6} B: round trip {:>7.0f} ns, one way {:>6.0f} ns\n", size, best * 1e9, best * 5e8);
  };
  run_pair(options, first_core, second_core, measure, echo);
}

void bench_rate(int first_core, int second_core, std::size_t size) {
  const std::size_t count = size <= 1024 ? 500'000 : (std::size_t{1} << 28) / size;
  std::vector<std::byte> payload(size);
  const auto measure = [&](Side& side) {
    double best = 1e9;
    for (int run = 0; run < kRuns; ++run) {
      const auto start = Clock::now();
      for (std::size_t i = 0; i < count; ++i) side.send({}, payload);
      side.receive_one();
      best = std::min(best, seconds_since(start) / static_cast<double>(count));
    }
    fmt::print("stream  {:>6} B: {:>6.1f} M/s, {:>5.2f} GB/s\n", size, 1e-6 / best,
               static_cast<double>(size) * 1e-9 / best);
  };
  const auto sink = [&](Side& side) {
    std::vector<std::byte> place(size);
    for (int run = 0; run < kRuns; ++run) {
      for (std::size_t got = 0; got < count;) {
        side.receive([&](std::span<const std::byte> message) {
          std::memcpy(place.data(), message.data(), size);
          ++got;
        });
      }
      side.send({}, {});
    }
  };
  run_pair({}, first_core, second_core, measure, sink);
}

/// GB/s of moving `size` bytes from the other process's buffer into an own one, one transfer after the other.
double bench_large(int first_core, int second_core, std::size_t size, const char* way, std::size_t slice) {
  double result = 0;
  const bool is_mapped = std::strcmp(way, "mapped") == 0;
  const bool is_staged = std::strcmp(way, "staging") == 0;
  const std::size_t repeats = std::clamp<std::size_t>((std::size_t{64} << 20) / size, 1, 200);
  const auto owner = [&](Side& side) {
    std::vector<std::byte> plain(is_mapped ? 0 : size, std::byte{1});
    std::byte* base = is_mapped ? *allocate_shared_memory(size) : plain.data();
    std::memset(base, 2, size);
    const auto region =
        *side.transport->register_memory(base, size, is_mapped ? device::MemoryKind::shared : device::MemoryKind::host);
    side.send(std::as_bytes(std::span(&region.key, 1)), {});
    if (is_staged) {
      for (std::size_t i = 0; i < repeats * kRuns; ++i) {
        side.receive_one();
        for (std::size_t at = 0; at < size; at += slice) side.send({}, {base + at, std::min(slice, size - at)});
      }
    }
    side.receive_one();
  };
  const auto reader = [&](Side& side) {
    std::vector<std::byte> place(size, std::byte{1});
    const auto region = *side.transport->register_memory(place.data(), size, device::MemoryKind::host);
    RegionKey key;
    std::memcpy(&key, side.receive_one().data(), sizeof key);
    double best = 1e9;
    for (int run = 0; run < kRuns; ++run) {
      const auto start = Clock::now();
      for (std::size_t i = 0; i < repeats; ++i) {
        if (is_staged) {
          side.send({}, {});
          for (std::size_t at = 0; at < size;) {
            side.receive([&](std::span<const std::byte> message) {
              std::memcpy(place.data() + at, message.data(), message.size());
              at += message.size();
            });
          }
          continue;
        }
        for (std::size_t at = 0; at < size; at += slice) {
          const std::size_t part = std::min(slice, size - at);
          const auto posted = side.link->post_read({&region, at, part}, {key, at, part}, Token{1});
          WEFT_CHECK(posted && *posted == Posted::started, "a read starts");
          while (side.transport->poll(side.out) == 0) {
          }
        }
      }
      best = std::min(best, seconds_since(start) / static_cast<double>(repeats));
    }
    side.send({}, {});
    result = static_cast<double>(size) * 1e-9 / best;
  };
  run_pair({}, first_core, second_core, reader, owner);
  return result;
}

/// What a poll costs that finds nothing, by the number of peers; and what it takes to connect them all to one rank.
void bench_idle_poll(std::uint32_t num_peers) {
  std::vector<std::unique_ptr<Transport>> ranks;
  for (std::uint32_t rank = 0; rank <= num_peers; ++rank) ranks.push_back(*make_shm_transport({.rank = Rank{rank}}));
  std::vector<PeerAddress> peers;
  std::vector<std::thread> threads;
  const auto begin = Clock::now();
  for (std::uint32_t rank = 1; rank <= num_peers; ++rank) {
    peers.push_back({Rank{rank}, ranks[rank]->address()});
    threads.emplace_back([&, rank] {
      const std::array root{PeerAddress{Rank{0}, ranks[0]->address()}};
      (void)ranks[rank]->connect(root, Deadline::after(std::chrono::seconds(20)));
    });
  }
  const auto connected = ranks[0]->connect(peers, Deadline::after(std::chrono::seconds(20)));
  for (std::thread& thread : threads) thread.join();
  const double connect_seconds = seconds_since(begin);
  for (const Connected& one : connected) WEFT_CHECK(one.endpoint.has_value(), "all connect");
  std::array<Completion, 64> out;
  double best = 1;
  constexpr int kPolls = 100'000;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = Clock::now();
    for (int i = 0; i < kPolls; ++i) (void)ranks[0]->poll(out);
    best = std::min(best, seconds_since(start) / kPolls);
  }
  fmt::print("idle poll of {:>3} peers: {:>4.0f} ns (all connected in {:.1f} ms)\n", num_peers, best * 1e9,
             connect_seconds * 1e3);
}

void run(int first_core, int second_core) {
  bench_flag(first_core, second_core);
  for (const std::size_t size : {8, 32, 48, 56, 64, 128, 256, 1024, 4096, 8192, 16384, 32768, 65536}) {
    bench_latency({}, first_core, second_core, size);
  }
  fmt::print("with flags and small rings, as between 256 ranks:\n");
  for (const std::size_t size : {32, 1024, 8192}) {
    bench_latency({.rank = {}, .num_local_ranks = 256}, first_core, second_core, size);
  }
  for (const std::uint32_t peers : {1, 4, 8, 16, 17, 64, 255}) bench_idle_poll(peers);
  for (const std::size_t size : {8, 32, 56, 256, 1024, 8192, 65536}) bench_rate(first_core, second_core, size);
  fmt::print("one way of a large payload, GB/s (slice in brackets)\n");
  for (const std::size_t kib : {16, 64, 128, 256, 1024, 4096, 16384, 65536}) {
    const std::size_t size = kib << 10;
    fmt::print(
        "{:>6} KiB: staging {:>5.2f} (16K) {:>5.2f} (64K) {:>5.2f} (128K), readv {:>5.2f} (64K) {:>5.2f} (256K) "
        "{:>5.2f} (1M), mapped {:>5.2f} (64K) {:>5.2f} (256K) {:>5.2f} (1M)\n",
        kib, bench_large(first_core, second_core, size, "staging", 16 << 10),
        bench_large(first_core, second_core, size, "staging", 64 << 10),
        bench_large(first_core, second_core, size, "staging", 128 << 10),
        bench_large(first_core, second_core, size, "readv", 64 << 10),
        bench_large(first_core, second_core, size, "readv", 256 << 10),
        bench_large(first_core, second_core, size, "readv", 1 << 20),
        bench_large(first_core, second_core, size, "mapped", 64 << 10),
        bench_large(first_core, second_core, size, "mapped", 256 << 10),
        bench_large(first_core, second_core, size, "mapped", 1 << 20));
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace weft::transport::shm

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  weft::transport::shm::run(argc > 1 ? std::atoi(argv[1]) : 0, argc > 2 ? std::atoi(argv[2]) : 1);
}
