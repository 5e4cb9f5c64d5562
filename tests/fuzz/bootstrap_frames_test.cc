#include <array>
#include <chrono>

#include <gtest/gtest.h>

#include "base/handshake.h"
#include "base/random.h"
#include "base/wire.h"
#include "bootstrap/address.h"
#include "bootstrap/frames.h"
#include "bootstrap/rank_list.h"
#include "bootstrap/records.h"
#include "bootstrap/session.h"

namespace weft::bootstrap {
namespace {

using Bytes = std::vector<std::byte>;

/// Messages as they should be, so that mutations get past the first checks.
std::vector<Bytes> good_messages() {
  ByteWriter members;
  encode_members(std::array{Rank{0}, Rank{1}, Rank{2}}, members);
  ContributeMessage contribution;
  contribution.operation = Operation::all_gather;
  contribution.what = "phase";
  contribution.members.assign(members.bytes().begin(), members.bytes().end());
  contribution.value = Bytes(9, std::byte{1});
  const Error error = Error{ErrorCode::timeout, "doing", "remedy"}.about(Rank{1});
  const Bytes values = std::move(ByteWriter{}.text("a").text("").text("ccc")).take();
  return {encode(RankMessage{JoinMessage{Rank{1}, 3, 4, 5, "host"}}),
          encode(RankMessage{contribution}),
          encode(RankMessage{LeaveMessage{}}),
          encode(ServiceMessage{AcceptedMessage{}}),
          encode(ServiceMessage{WelcomeMessage{3}}),
          encode(ServiceMessage{RefusedMessage{error}}),
          encode(ServiceMessage{FailedMessage{{1, 2}, error}}),
          encode(ServiceMessage{ResultMessage{{1, 2}, values}}),
          encode(ServiceMessage{ClosingMessage{}}),
          values,
          Bytes(members.bytes().begin(), members.bytes().end())};
}

Bytes mutated(Bytes bytes, Random& random) {
  for (std::uint64_t i = 0; i <= random.below(4); ++i) {
    const std::uint64_t kind = random.below(4);
    if (kind == 0 || bytes.empty()) {
      bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(random.below(bytes.size() + 1)),
                   static_cast<std::byte>(random.next()));
    } else if (kind == 1) {
      bytes.resize(random.below(bytes.size()) + 1);
    } else if (kind == 2) {
      bytes[random.below(bytes.size())] = random.happens(50) ? std::byte{0xff} : std::byte{0};
    } else {
      bytes[random.below(bytes.size())] = static_cast<std::byte>(random.next());
    }
  }
  return bytes;
}

Bytes noise(Random& random, std::size_t size) {
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
  return bytes;
}

/// What is accepted must be the same message again when it is written and read once more.
template <class Message, class Decode>
void expect_stable(const Result<Message>& message, Decode decode) {
  if (!message) {
    EXPECT_EQ(message.error().code(), ErrorCode::malformed);
    return;
  }
  const Bytes written = encode(*message);
  const auto again = decode(written);
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(encode(*again), written);
}

void feed_decoders(const Bytes& bytes) {
  expect_stable(decode_rank_message(bytes), decode_rank_message);
  expect_stable(decode_service_message(bytes), decode_service_message);
  if (const auto members = decode_members(bytes, 64)) {
    EXPECT_LE(members->size(), 64U);
  }
  for (const std::size_t num_members : {std::size_t{0}, std::size_t{3}, std::size_t{1} << 40}) {
    if (const auto values = decode_values(bytes, num_members)) {
      EXPECT_EQ(values->size(), num_members);
    }
  }
  if (const auto header = decode_record_header(bytes)) {
    EXPECT_LE(header->size_bytes, kRecordPayloadSizeMax + kRecordTagSize);
  }
  Bytes message;
  const std::array<std::byte, 32> key{};
  EXPECT_FALSE(
      RecordOpener{key}.open(std::span(bytes).first(std::min(bytes.size(), kRecordHeaderSize)), bytes, message));
  EXPECT_TRUE(message.empty());
  static_cast<void>(parse_host_port({reinterpret_cast<const char*>(bytes.data()), bytes.size()}).has_value());
}

TEST(BootstrapFuzz, DecodersTakeAnyBytes) {
  const std::vector<Bytes> good = good_messages();
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(700);
  std::uint64_t seed = 0;
  for (; std::chrono::steady_clock::now() < until && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    feed_decoders(random.happens(20) ? noise(random, random.below(200))
                                     : mutated(good[random.below(good.size())], random));
  }
  EXPECT_GT(seed, 100U);
}

TEST(BootstrapFuzz, HandshakesTakeAnyBytes) {
  const Secret secret = Secret::random();
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  for (std::uint64_t seed = 0; std::chrono::steady_clock::now() < until; ++seed) {
    Random random{seed};
    Handshake client{Handshake::Role::client, secret, "control"};
    Handshake server{Handshake::Role::server, secret, "control"};
    Bytes hello = client.take_output();
    if (random.happens(50)) hello[random.below(hello.size())] ^= static_cast<std::byte>(1 + random.below(255));
    if (random.happens(10)) hello = noise(random, hello.size());
    if (!server.receive(hello)) continue;
    ASSERT_FALSE(server.receive(noise(random, server.wanted())));
    ASSERT_FALSE(client.receive(noise(random, client.wanted())));
    ASSERT_FALSE(server.is_complete() || client.is_complete());
  }
}

TEST(BootstrapFuzz, UniqueIdsTakeAnyBytes) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Random random{seed};
    UniqueId id;
    for (std::byte& byte : id.bytes) byte = static_cast<std::byte>(random.next());
    if (random.happens(50)) id.bytes[0] = std::byte{1}, id.bytes[1] = std::byte{0};
    EXPECT_FALSE(identity_of(id, Rank{0}, 1));
  }
}

}  // namespace
}  // namespace weft::bootstrap
