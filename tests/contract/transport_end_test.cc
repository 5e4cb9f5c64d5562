#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/spin.h"
#include "tests/contract/contract_backends.h"

// How a link ends: in order, or by a failure.
namespace weft::transport::contract {
namespace {

using Kind = Completion::Kind;

TEST_P(TransportContract, CloseDeliversEverythingThatWasSentBefore) {
  const bool writes = capabilities().large_path == LargePath::write;
  constexpr std::uint32_t kMessages = 100;
  const Block& source = block(kA, 3 << 20);
  const Block& destination = block(kB, 3 << 20);
  fill_pattern(source.bytes, 1);
  if (writes) {
    ASSERT_FALSE(write(kA, kB, source.local(0, 3 << 20), destination.remote(0, 3 << 20), 7));
  }
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    ASSERT_FALSE(send(kA, kB, std::as_bytes(std::span(&i, 1)), pattern(i, 500)));
  }
  ASSERT_FALSE(send(kB, kA, pattern(2, 10)));
  link(kA, kB).close();
  link(kA, kB).close();
  EXPECT_EQ(send(kA, kB, pattern(1, 1)), ErrorCode::closed);
  drive_until([&] { return count(kB, Kind::closed) == 1 && count(kA, Kind::message) == 1 && tokens_open() == 0; });
  EXPECT_EQ(count(kB, Kind::message), kMessages);
  EXPECT_EQ(log_[kB].back().kind, Kind::closed) << "something came after the end";
  if (writes) {
    EXPECT_TRUE(has_notice(kB, 7));
    EXPECT_TRUE(has_pattern(destination.bytes, 1));
    EXPECT_EQ(write(kA, kB, source.local(0, 1), destination.remote(0, 1)), ErrorCode::closed);
  }
  EXPECT_EQ(send(kB, kA, pattern(1, 1)), ErrorCode::closed) << "a post to a peer that closed";
  EXPECT_FALSE(link(kB, kA).failure());
  link(kB, kA).close();
  drive_until([&] { return count(kA, Kind::closed) == 1; });
  EXPECT_FALSE(link(kA, kB).failure());
  drive_for(std::chrono::milliseconds(20));
  EXPECT_EQ(count(kA, Kind::closed) + count(kB, Kind::closed), 2u);
  EXPECT_EQ(count(kA, Kind::failed) + count(kB, Kind::failed), 0u);
}

TEST_P(TransportContract, BothEndsMayCloseAtOnceAndLeave) {
  ASSERT_FALSE(send(kA, kB, pattern(1, 100)));
  ASSERT_FALSE(send(kB, kA, pattern(2, 100)));
  link(kA, kB).close();
  link(kB, kA).close();
  drive_until([&] { return count(kA, Kind::closed) == 1 && count(kB, Kind::closed) == 1; });
  EXPECT_EQ(count(kA, Kind::message), 1u);
  EXPECT_EQ(count(kB, Kind::message), 1u);
  kill(kA);
  drive_for(std::chrono::milliseconds(20));
  EXPECT_EQ(count(kB, Kind::failed), 0u) << "a link that both ends closed cannot fail";
}

TEST_P(TransportContract, AFailureIsStickyAndNamesThePeer) {
  start(3);
  const Rank c{2};
  const Block& source = block(kA, 100);
  kill(kB);
  drive_until([&] { return count(kA, Kind::failed) == 1 && count(c, Kind::failed) == 1; });
  ASSERT_TRUE(link(kA, kB).failure());
  const std::string first = link(kA, kB).failure()->message();
  EXPECT_EQ(link(kA, kB).failure()->code(), ErrorCode::peer_failed);
  EXPECT_EQ(link(kA, kB).failure()->peer(), kB);
  EXPECT_EQ(log_[kA].back().peer, kB);
  EXPECT_EQ(send(kA, kB, pattern(1, 8)), ErrorCode::peer_failed);
  EXPECT_EQ(write(kA, kB, source.local(0, 8), {{}, 0, 8}), ErrorCode::peer_failed);
  EXPECT_EQ(read(kA, kB, source.local(0, 8), {{}, 0, 8}), ErrorCode::peer_failed);
  EXPECT_FALSE(link(kA, kB).load_pointer({{}, 0, 8}));
  link(kA, kB).close();
  drive_for(std::chrono::milliseconds(20));
  EXPECT_EQ(count(kA, Kind::failed), 1u);
  EXPECT_EQ(link(kA, kB).failure()->message(), first);
  // The others go on.
  ASSERT_FALSE(send(kA, c, pattern(1, 8)));
  drive_until([&] { return count(c, Kind::message) == 1; });
}

TEST_P(TransportContract, WhatArrivedBeforeAFailureIsPolledBeforeIt) {
  if (!GetParam().has_threads) GTEST_SKIP() << "a death in the simulation loses what is in flight";
  for (std::uint32_t i = 0; i < 10; ++i) ASSERT_FALSE(send(kB, kA, pattern(i, 100)));
  drive_until([&] { return count(kA, Kind::message) >= 1; });
  kill(kB);
  drive_until([&] { return count(kA, Kind::failed) == 1; });
  EXPECT_EQ(log_[kA].back().kind, Kind::failed);
  EXPECT_EQ(count(kA, Kind::message), 10u);
}

TEST_P(TransportContract, ARevocationIsSeenAtOnceAndEndsTheLinkAfterWhatWasSent) {
  if (capabilities().large_path != LargePath::read) GTEST_SKIP() << "nothing is read over this link";
  EXPECT_FALSE(link(kB, kA).is_revoked());
  ASSERT_FALSE(send(kA, kB, pattern(1, 100)));
  link(kA, kB).revoke("its disk is full");
  EXPECT_TRUE(link(kB, kA).is_revoked());
  EXPECT_FALSE(link(kA, kB).is_revoked()) << "the other direction was not";
  link(kA, kB).revoke("again");
  drive_until([&] { return count(kB, Kind::failed) == 1; });
  EXPECT_EQ(count(kB, Kind::message), 1u);
  EXPECT_EQ(log_[kB].back().kind, Kind::failed);
  ASSERT_TRUE(link(kB, kA).failure());
  EXPECT_EQ(link(kB, kA).failure()->peer(), kA);
  EXPECT_NE(link(kB, kA).failure()->message().find("its disk is full"), std::string::npos);
}

TEST_P(TransportContract, ARankThatRevokesAndNeverPollsAgainIsHeardOfThoughNothingFits) {
  // Until nothing more is taken: what is told to a full link is told to nobody.
  const auto bytes = pattern(1, capabilities().message_size_max);
  std::size_t taken = 0;
  for (;;) {
    const auto posted = link(kA, kB).post_message(bytes, {});
    ASSERT_TRUE(posted);
    if (*posted == Posted::again) break;
    ASSERT_LT(++taken, 100'000u);
  }
  link(kA, kB).revoke("its disk is full");
  dead_.insert(kA);  // It is not polled from now on.
  drive_until([&] { return count(kB, Kind::failed) == 1; });
  EXPECT_EQ(log_[kB].back().kind, Kind::failed);
  EXPECT_EQ(link(kB, kA).failure()->peer(), kA);
  dead_.erase(kA);
}

TEST_P(TransportContract, ACloseBeforeARevocationIsAnEndInOrder) {
  link(kA, kB).close();
  link(kA, kB).revoke("too late");
  drive_until([&] { return count(kB, Kind::closed) == 1; });
  EXPECT_EQ(count(kB, Kind::failed), 0u);
  EXPECT_EQ(link(kB, kA).is_revoked(), capabilities().large_path == LargePath::read);
}

TEST_P(TransportContract, NoByteThatWasWrittenAfterARevocationIsTakenForGood) {
  if (capabilities().large_path != LargePath::read || !GetParam().has_threads) {
    GTEST_SKIP() << "nothing is read over this link by another thread";
  }
  constexpr std::size_t kSize = 1 << 20;
  const bool is_mapped = capabilities().plain_path != PlainPath::read;
  int num_good = 0;
  for (int round = 0; round < 20; ++round) {
    start(2);
    const Block& theirs = block(kA, kSize, is_mapped ? device::MemoryKind::shared : device::MemoryKind::host);
    const Block& copy = block(kB, kSize);
    std::ranges::fill(theirs.bytes, std::byte{1});
    std::atomic<bool> is_reading = false;
    std::thread owner([&] {
      while (!is_reading) {
      }
      for (int i = 0; i < round * 200; ++i) cpu_pause();
      link(kA, kB).revoke("its disk is full");
      std::ranges::fill(theirs.bytes, std::byte{2});
    });
    is_reading = true;
    for (int i = 0; i < 40; ++i) {
      if (is_mapped) {
        const auto pointer = link(kB, kA).load_pointer(theirs.remote(0, kSize));
        ASSERT_TRUE(pointer) << pointer.error().message();
        std::copy_n(*pointer, kSize, copy.bytes.data());
      } else {
        ASSERT_FALSE(read(kB, kA, copy.local(0, kSize), theirs.remote(0, kSize)));
      }
      if (link(kB, kA).is_revoked()) break;
      ++num_good;
      const auto num_old = static_cast<std::size_t>(std::ranges::count(copy.bytes, std::byte{1}));
      ASSERT_EQ(num_old, kSize) << "bytes of the memory's next use count as good";
    }
    owner.join();
    drive_until([&] { return tokens_open() == 0; });
  }
  EXPECT_GT(num_good, 0);
}

}  // namespace
}  // namespace weft::transport::contract
