#include <gtest/gtest.h>

#include <algorithm>

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

}  // namespace
}  // namespace weft::transport::contract
