// What a peer may leave here before its call is made is bounded, also where the peer breaks the protocol.
#include <gtest/gtest.h>

#include "tests/sim/link_kinds.h"
#include "tests/sim/sim_group.h"

namespace weft::test {
namespace {

using collectives::engine::bytes_of;
using collectives::engine::Channel;
using collectives::engine::MessageHeaderWire;
using collectives::engine::MessageKind;

constexpr std::uint32_t kRunAhead = 128;
constexpr std::size_t kEager = 200;

class Parked : public testing::Test {
 protected:
  /// Rank 1 says this; rank 0 takes it.
  void say(const MessageHeaderWire& header, std::size_t payload_bytes) {
    const std::vector<std::byte> payload(payload_bytes);
    auto* endpoint = group_.cluster().transport(Rank{1}).endpoint(Rank{0});
    for (;;) {
      const auto posted = endpoint->post_message(bytes_of(header), payload);
      ASSERT_TRUE(posted) << posted.error().message();
      if (*posted == transport::Posted::started) break;
      take();
    }
    take();
  }
  void take() {
    while (group_.cluster().step()) (void)group_.engine(0).progress();
    (void)group_.engine(0).progress();
  }
  void expect_protocol_error(const std::string& what) {
    ASSERT_TRUE(group_.engine(0).failure()) << group_.engine(0).parked_bytes() << " bytes are parked";
    const Error& error = *group_.engine(0).failure();
    EXPECT_EQ(error.code(), ErrorCode::malformed) << error.message();
    EXPECT_NE(error.message().find("rank 1"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find(what), std::string::npos) << error.message();
  }

  SimGroup group_{options_of(kLinkKinds[0], 2, 3)};
};

TEST_F(Parked, HoldsWhatAPeerInOrderMaySend) {
  for (const Channel channel : {Channel::collective, Channel::point_to_point}) {
    for (std::uint32_t sequence = 0; sequence < kRunAhead; ++sequence) {
      MessageHeaderWire header;
      header.channel = channel;
      header.sequence = sequence;
      say(header, kEager);
    }
  }
  EXPECT_FALSE(group_.engine(0).failure());
  EXPECT_GE(group_.engine(0).parked_bytes(), 2 * kRunAhead * kEager);
}

TEST_F(Parked, RefusesCallsTooFarAhead) {
  for (const Channel channel : {Channel::collective, Channel::point_to_point}) {
    for (const MessageKind kind : {MessageKind::data, MessageKind::ready}) {
      SimGroup group{options_of(kLinkKinds[0], 2, 3)};
      MessageHeaderWire header;
      header.kind = kind;
      header.channel = channel;
      header.sequence = kRunAhead;
      auto* endpoint = group.cluster().transport(Rank{1}).endpoint(Rank{0});
      while (*endpoint->post_message(bytes_of(header), {}) == transport::Posted::again) {
      }
      while (group.cluster().step()) (void)group.engine(0).progress();
      (void)group.engine(0).progress();
      ASSERT_TRUE(group.engine(0).failure());
      EXPECT_EQ(group.engine(0).failure()->code(), ErrorCode::malformed);
    }
  }
}

TEST_F(Parked, RefusesDataAboveTheEagerLimit) {
  say({}, kEager + 8);
  expect_protocol_error("eager limit");
}

TEST_F(Parked, RefusesThanksForWhatWasNeverSent) {
  MessageHeaderWire header;
  header.kind = MessageKind::consumed;
  say(header, 0);
  expect_protocol_error("thanks");
}

TEST_F(Parked, RefusesMoreMessagesThanCallsCanBeAhead) {
  MessageHeaderWire header;
  for (std::uint32_t i = 0; i < 100'000 && !group_.engine(0).failure(); ++i) {
    header.slice = i;
    say(header, 0);
  }
  expect_protocol_error("more messages");
  EXPECT_LT(header.slice, 50'000U);
}

}  // namespace
}  // namespace weft::test
