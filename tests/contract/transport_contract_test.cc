#include <gtest/gtest.h>

#include <algorithm>

#include "tests/contract/contract_backends.h"

// What every transport promises about messages (transport/endpoint.h). Writes and reads, sleep and end are in their own
// files.
namespace weft::transport::contract {

// A file that a build holds back may leave a suite without backends: that is for each backend's file to say.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TransportContract);

namespace {

using Kind = Completion::Kind;

TEST_P(TransportContract, CapabilitiesAreTheSameOnBothEnds) {
  const Capabilities& a = link(kA, kB).capabilities();
  const Capabilities& b = link(kB, kA).capabilities();
  EXPECT_EQ(a.large_path, b.large_path);
  EXPECT_EQ(a.plain_path, b.plain_path);
  EXPECT_EQ(a.maps_shared_memory, b.maps_shared_memory);
  EXPECT_EQ(a.message_size_max, b.message_size_max);
  EXPECT_EQ(a.eager_limit, b.eager_limit);
  EXPECT_EQ(a.slice_size, b.slice_size);
  EXPECT_GE(a.message_size_max, 1024u);
  EXPECT_LE(a.eager_limit, a.message_size_max);
  EXPECT_EQ(link(kA, kB).peer(), kB);
  EXPECT_NE(link(kA, kB).describe(), "");
  EXPECT_EQ(transport(kA).endpoint(kA), nullptr);
  EXPECT_EQ(transport(kA).endpoint(Rank{77}), nullptr);
}

TEST_P(TransportContract, MessagesOfEverySizeArriveInOrderAndIntact) {
  std::vector<std::size_t> sizes;
  for (std::size_t size = 0; size < 300; ++size) sizes.push_back(size);
  for (std::size_t size = 300; size < capabilities().message_size_max; size += 61) sizes.push_back(size);
  sizes.push_back(capabilities().message_size_max);
  for (const std::size_t size : sizes) {
    const auto bytes = pattern(size, size);
    const std::size_t header = std::min<std::size_t>(size, size % 65);
    ASSERT_FALSE(send(kA, kB, std::span(bytes).first(header), std::span(bytes).subspan(header)));
  }
  drive_until([&] { return log_[kB].size() == sizes.size(); });
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    ASSERT_EQ(log_[kB][i].kind, Kind::message);
    ASSERT_EQ(log_[kB][i].peer, kA);
    ASSERT_EQ(log_[kB][i].message.size(), sizes[i]);
    ASSERT_TRUE(has_pattern(log_[kB][i].message, sizes[i])) << sizes[i];
  }
}

TEST_P(TransportContract, AMessageThatIsTooLongIsRefusedAndHarmless) {
  const std::vector<std::byte> bytes(capabilities().message_size_max + 1);
  EXPECT_EQ(send(kA, kB, bytes), ErrorCode::out_of_range);
  EXPECT_EQ(send(kA, kB, std::span(bytes).first(1), std::span(bytes).subspan(1)), ErrorCode::out_of_range);
  ASSERT_FALSE(send(kA, kB, pattern(1, 8)));
  drive_until([&] { return count(kB, Kind::message) == 1; });
  EXPECT_TRUE(has_pattern(log_[kB][0].message, 1));
}

TEST_P(TransportContract, AFloodIsHeldBackAndNothingIsLost) {
  const std::vector<std::byte> payload = pattern(3, capabilities().message_size_max - 8);
  const auto post = [&](std::uint64_t number) {
    return *link(kA, kB).post_message(std::as_bytes(std::span(&number, 1)), payload);
  };
  // The peer polls nothing: a bounded amount is taken, then the answer is `again` (and stays so).
  std::uint64_t posted = 0;
  std::uint64_t refusals = 0;
  const std::uint64_t most = (256ULL << 20) / payload.size();
  while (refusals < 100 && posted < most) {
    if (post(posted) == Posted::started) {
      ++posted;
    } else {
      ++refusals;
      poll(kA);
    }
  }
  EXPECT_GT(posted, 0u);
  EXPECT_LT(posted, most) << "nothing holds a sender back";
  std::uint64_t arrived = 0;
  on_seen_ = [&](Rank rank, const Completion& done) {
    if (rank != kB || done.kind != Kind::message) return;
    std::uint64_t number = 0;
    ASSERT_EQ(done.message.size(), 8 + payload.size());
    std::copy_n(done.message.begin(), 8, reinterpret_cast<std::byte*>(&number));
    EXPECT_EQ(number, arrived++);
    ASSERT_TRUE(std::ranges::equal(done.message.subspan(8), payload));
  };
  drive_until([&] { return arrived == posted; });
  EXPECT_FALSE(send(kA, kB, std::as_bytes(std::span(&posted, 1)), payload));
  drive_until([&] { return arrived == posted + 1; });
}

TEST_P(TransportContract, BothDirectionsFloodAtOnce) {
  constexpr std::uint64_t kCount = 3000;
  std::map<Rank, std::uint64_t> posted;
  std::map<Rank, std::uint64_t> arrived;
  on_seen_ = [&](Rank rank, const Completion& done) {
    std::uint64_t number = 0;
    ASSERT_EQ(done.kind, Kind::message);
    std::copy_n(done.message.begin(), 8, reinterpret_cast<std::byte*>(&number));
    ASSERT_EQ(number, arrived[rank]++);
    ASSERT_TRUE(has_pattern(done.message.subspan(8), number));
  };
  drive_until([&] {
    for (const Rank from : {kA, kB}) {
      for (std::uint64_t& number = posted[from]; number < kCount; ++number) {
        const auto payload = pattern(number, number * 7 % (capabilities().message_size_max - 8));
        const auto answer =
            link(from, from == kA ? kB : kA).post_message(std::as_bytes(std::span(&number, 1)), payload);
        if (*answer == Posted::again) break;
      }
    }
    return arrived[kA] == kCount && arrived[kB] == kCount;
  });
}

TEST_P(TransportContract, FourRanksTalkAtOnce) {
  start(4);
  constexpr std::uint32_t kCount = 200;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    for (std::uint32_t from = 0; from < 4; ++from) {
      for (std::uint32_t to = 0; to < 4; ++to) {
        if (from == to) continue;
        const std::array<std::uint32_t, 2> words{from, i};
        ASSERT_FALSE(send(Rank{from}, Rank{to}, std::as_bytes(std::span(words))));
      }
    }
  }
  drive_until([&] {
    return std::ranges::all_of(std::array{0u, 1u, 2u, 3u},
                               [&](std::uint32_t rank) { return log_[Rank{rank}].size() == 3 * kCount; });
  });
  for (const auto& [rank, log] : log_) {
    std::map<Rank, std::uint32_t> next;
    for (const Seen& seen : log) {
      const std::array<std::uint32_t, 2> words{seen.peer.value(), next[seen.peer]++};
      EXPECT_TRUE(std::ranges::equal(seen.message, std::as_bytes(std::span(words))));
    }
  }
}

}  // namespace
}  // namespace weft::transport::contract
