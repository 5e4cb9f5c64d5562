#include "transport/sim/sim.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace weft::transport::sim {
namespace {

constexpr Rank kA{0};
constexpr Rank kB{1};

std::vector<Completion> poll_all(Transport& transport) {
  std::array<Completion, 64> out;
  const std::size_t count = transport.poll(out);
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count)};
}

/// What happened where and when, of a fixed program under `seed`.
std::string history_of(std::uint64_t seed) {
  SimCluster cluster{
      {.ranks = 3, .seed = seed, .faults = {.delay = Nanos{30'000}, .stall_percent = 5, .post_again_percent = 10}}};
  cluster.connect_all();
  std::vector<std::byte> source(64, std::byte{7});
  std::vector<std::byte> destination(64);
  const auto from = cluster.transport(kA).register_memory(source.data(), 64, device::MemoryKind::host);
  const auto to = cluster.transport(kB).register_memory(destination.data(), 64, device::MemoryKind::host);
  std::string history;
  for (std::uint32_t i = 0; i < 20; ++i) {
    Endpoint& link = *cluster.transport(kA).endpoint(kB);
    const auto posted = link.post_write({&*from, i, 1}, {to->key, i, 1}, i, Token{i});
    history += *posted == Posted::started ? 's' : 'a';
    const auto message = link.post_message(std::as_bytes(std::span(&i, 1)), {});
    history += *message == Posted::started ? 's' : 'a';
  }
  do {
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      for (const Completion& done : poll_all(cluster.transport(Rank{rank}))) {
        history += std::to_string(rank) + ":" + std::to_string(static_cast<int>(done.kind)) + "," +
                   std::to_string(done.notice) + "," + std::to_string(static_cast<std::uint64_t>(done.token)) + "@" +
                   std::to_string(cluster.clock().now().count()) + " ";
      }
    }
  } while (cluster.step() || !cluster.is_idle());
  return history;
}

TEST(SimCluster, TheSameSeedGivesTheSameHistory) {
  EXPECT_EQ(history_of(1), history_of(1));
  EXPECT_NE(history_of(1), history_of(2));
}

TEST(SimCluster, ReuseOfASourceBeforeItsCompletionShows) {
  int caught = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimCluster cluster{{.seed = seed, .faults = {.delay = Nanos{1000}}}};
    cluster.connect_all();
    std::array<std::byte, 8> source{};
    std::array<std::byte, 8> destination{};
    const auto from = cluster.transport(kA).register_memory(source.data(), 8, device::MemoryKind::host);
    const auto to = cluster.transport(kB).register_memory(destination.data(), 8, device::MemoryKind::host);
    ASSERT_TRUE(cluster.transport(kA).endpoint(kB)->post_write({&*from, 0, 8}, {to->key, 0, 8}, 1, Token{1}));
    source.fill(std::byte{9});  // Wrong: the Completion was not polled.
    while (cluster.step()) {
    }
    caught += destination[0] == std::byte{9} ? 1 : 0;
  }
  EXPECT_EQ(caught, 20);
}

TEST(SimCluster, APolledMessageIsOverwrittenAtTheNextPoll) {
  SimCluster cluster{{}};
  cluster.connect_all();
  const std::array<std::byte, 4> text{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  ASSERT_TRUE(cluster.transport(kA).endpoint(kB)->post_message(text, {}));
  while (cluster.step()) {
  }
  const auto done = poll_all(cluster.transport(kB));
  ASSERT_EQ(done.size(), 1u);
  EXPECT_TRUE(std::ranges::equal(done[0].message, text));
}

TEST(SimCluster, KillLosesWhatIsInFlightAndTellsEveryPeer) {
  SimCluster cluster{{.ranks = 3, .faults = {.delay = Nanos{1000}}}};
  cluster.connect_all();
  ASSERT_TRUE(cluster.transport(kA).endpoint(kB)->post_message({}, {}));
  cluster.kill(kA);
  while (cluster.step()) {
  }
  for (const Rank rank : {kB, Rank{2}}) {
    const auto done = poll_all(cluster.transport(rank));
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].kind, Completion::Kind::failed);
    EXPECT_EQ(done[0].peer, kA);
    EXPECT_EQ(cluster.transport(rank).endpoint(kA)->failure()->code(), ErrorCode::peer_failed);
  }
  EXPECT_FALSE(cluster.transport(kB).endpoint(Rank{2})->failure());
}

TEST(SimCluster, AKillCanWaitForItsTime) {
  SimCluster cluster{{}};
  cluster.connect_all();
  cluster.kill_after(kB, Nanos{500});
  cluster.advance(Nanos{499});
  EXPECT_FALSE(cluster.transport(kA).endpoint(kB)->failure());
  cluster.advance(Nanos{10});
  EXPECT_TRUE(cluster.transport(kA).endpoint(kB)->failure());
  EXPECT_EQ(cluster.clock().now(), Nanos{509});
}

TEST(SimCluster, ACutPairCannotConnect) {
  SimCluster cluster{{.ranks = 3}};
  cluster.cut(kA, kB);
  const std::vector<PeerAddress> peers{{kB, cluster.transport(kB).address()},
                                       {Rank{2}, cluster.transport(Rank{2}).address()}};
  const auto settled = cluster.transport(kA).connect(peers, Deadline::never());
  ASSERT_EQ(settled.size(), 2u);
  EXPECT_EQ(settled[0].endpoint.error().peer(), kB);
  EXPECT_TRUE(settled[1].endpoint);
  EXPECT_EQ(cluster.transport(kA).endpoint(kB), nullptr);
}

TEST(SimCluster, AReadLinkRefusesWritesToPlainMemory) {
  SimCluster cluster{{.link = {.large_path = LargePath::read,
                               .plain_path = PlainPath::staging,
                               .maps_shared_memory = true,
                               .message_size_max = 4096}}};
  cluster.connect_all();
  std::array<std::byte, 8> bytes{};
  auto& a = cluster.transport(kA);
  auto& b = cluster.transport(kB);
  const auto local = a.register_memory(bytes.data(), 8, device::MemoryKind::host);
  const auto plain = b.register_memory(bytes.data(), 8, device::MemoryKind::host);
  const auto shared = b.register_memory(bytes.data(), 8, device::MemoryKind::shared);
  Endpoint& link = *a.endpoint(kB);
  EXPECT_EQ(link.post_write({&*local, 0, 8}, {plain->key, 0, 8}, {}, Token{1}).error().code(), ErrorCode::unsupported);
  EXPECT_EQ(link.post_read({&*local, 0, 8}, {plain->key, 0, 8}, Token{1}).error().code(), ErrorCode::unsupported);
  EXPECT_EQ(link.load_pointer({plain->key, 0, 8}).error().code(), ErrorCode::unsupported);
  EXPECT_EQ(*link.load_pointer({shared->key, 3, 5}), bytes.data() + 3);
  EXPECT_EQ(link.load_pointer({shared->key, 4, 5}).error().code(), ErrorCode::out_of_range);
}

}  // namespace
}  // namespace weft::transport::sim
