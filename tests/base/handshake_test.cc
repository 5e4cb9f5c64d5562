#include "base/handshake.h"

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weft {
namespace {

using Role = Handshake::Role;

struct Pair {
  Handshake client;
  Handshake server;

  Pair(const Secret& client_secret, const Secret& server_secret, std::string_view client_purpose = "control",
       std::string_view server_purpose = "control")
      : client(Role::client, client_secret, client_purpose), server(Role::server, server_secret, server_purpose) {}
};

TEST(Handshake, BothSidesCompleteWithExchangedKeys) {
  const Secret secret = Secret::random();
  Pair pair{secret, secret};
  EXPECT_EQ(pair.server.wanted(), Handshake::kHelloSize);
  EXPECT_TRUE(pair.server.take_output().empty());
  const auto hello = pair.client.take_output();
  ASSERT_EQ(hello.size(), Handshake::kHelloSize);
  EXPECT_TRUE(pair.client.take_output().empty());

  ASSERT_TRUE(pair.server.receive(hello));
  const auto reply = pair.server.take_output();
  ASSERT_EQ(reply.size(), pair.client.wanted());
  ASSERT_TRUE(pair.client.receive(reply));
  EXPECT_TRUE(pair.client.is_complete());
  EXPECT_FALSE(pair.server.is_complete());

  const auto proof = pair.client.take_output();
  ASSERT_EQ(proof.size(), pair.server.wanted());
  ASSERT_TRUE(pair.server.receive(proof));
  EXPECT_TRUE(pair.server.is_complete());
  EXPECT_EQ(pair.client.wanted(), 0U);
  EXPECT_EQ(pair.server.wanted(), 0U);

  EXPECT_EQ(pair.client.keys().send, pair.server.keys().receive);
  EXPECT_EQ(pair.client.keys().receive, pair.server.keys().send);
  EXPECT_NE(pair.client.keys().send, pair.client.keys().receive);
}

TEST(Handshake, KeysAreFreshForEachConnection) {
  const Secret secret = Secret::random();
  std::vector<std::array<std::byte, 32>> keys;
  for (int i = 0; i < 2; ++i) {
    Pair pair{secret, secret};
    ASSERT_TRUE(pair.server.receive(pair.client.take_output()));
    ASSERT_TRUE(pair.client.receive(pair.server.take_output()));
    keys.push_back(pair.client.keys().send);
  }
  EXPECT_NE(keys[0], keys[1]);
}

TEST(Handshake, AClientWithAnotherSecretFindsOutFromTheReply) {
  Pair pair{Secret::random(), Secret::random()};
  ASSERT_TRUE(pair.server.receive(pair.client.take_output()));
  const Status status = pair.client.receive(pair.server.take_output());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::unauthenticated);
  EXPECT_FALSE(pair.client.is_complete());
  EXPECT_EQ(pair.client.wanted(), 0U);
  EXPECT_TRUE(pair.client.take_output().empty());
}

TEST(Handshake, AnotherPurposeIsRefusedBeforeAnythingIsSaid) {
  const Secret secret = Secret::random();
  Pair pair{secret, secret, "tcp", "control"};
  const Status status = pair.server.receive(pair.client.take_output());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::unauthenticated);
  EXPECT_TRUE(pair.server.take_output().empty());
}

TEST(Handshake, AnotherVersionIsNamedOnBothSides) {
  const Secret secret = Secret::random();
  Pair pair{secret, secret};
  auto hello = pair.client.take_output();
  hello[0] = std::byte{9};
  const Status at_server = pair.server.receive(hello);
  ASSERT_FALSE(at_server);
  EXPECT_EQ(at_server.error().code(), ErrorCode::unsupported);
  EXPECT_NE(at_server.error().message().find("version 9"), std::string::npos);

  auto reply = pair.server.take_output();
  ASSERT_EQ(reply.size(), Handshake::kReplySize);
  reply[0] = std::byte{7};
  const Status at_client = pair.client.receive(reply);
  ASSERT_FALSE(at_client);
  EXPECT_EQ(at_client.error().code(), ErrorCode::unsupported);
}

TEST(Handshake, TheVersionReplyProvesNothing) {
  const Secret secret = Secret::random();
  Pair pair{secret, secret};
  auto hello = pair.client.take_output();
  hello[0] = std::byte{9};
  ASSERT_FALSE(pair.server.receive(hello));
  const Status status = pair.client.receive(pair.server.take_output());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::unauthenticated);
}

TEST(Handshake, ForeignBytesAreNotWeft) {
  Handshake server{Role::server, Secret::random(), "control"};
  std::string request = "GET / HTTP/1.1\r\nHost: example\r\n\r\n";
  request.resize(Handshake::kHelloSize, 'x');
  const Status status = server.receive(std::as_bytes(std::span(request)));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::unauthenticated);
  EXPECT_TRUE(server.take_output().empty());
  EXPECT_EQ(server.wanted(), 0U);
}

TEST(Handshake, AnyChangedByteFails) {
  const Secret secret = Secret::random();
  constexpr std::size_t kTotal = Handshake::kHelloSize + Handshake::kReplySize + Handshake::kProofSize;
  // What a proof covers, and the proofs themselves; the spare bytes of ProofWire (8..31) carry nothing.
  for (std::size_t at = 0; at < kTotal; ++at) {
    const std::size_t in_proof = at - Handshake::kHelloSize - Handshake::kReplySize;
    if (at >= Handshake::kHelloSize + Handshake::kReplySize && in_proof >= 8 && in_proof < 32) continue;
    Pair pair{secret, secret};
    auto hello = pair.client.take_output();
    if (at < hello.size()) hello[at] ^= std::byte{1};
    bool all_passed = pair.server.receive(hello).has_value();
    if (all_passed) {
      auto reply = pair.server.take_output();
      if (at >= hello.size() && at - hello.size() < reply.size()) reply[at - hello.size()] ^= std::byte{1};
      all_passed = pair.client.receive(reply).has_value();
    }
    if (all_passed) {
      auto proof = pair.client.take_output();
      ASSERT_GE(at, Handshake::kHelloSize + Handshake::kReplySize) << "an early change was not noticed: " << at;
      proof[in_proof] ^= std::byte{1};
      all_passed = pair.server.receive(proof).has_value();
    }
    EXPECT_FALSE(all_passed) << "byte " << at;
    EXPECT_FALSE(pair.server.is_complete()) << "byte " << at;
  }
}

TEST(Handshake, ARecordedClientCannotBeReplayed) {
  const Secret secret = Secret::random();
  Pair recorded{secret, secret};
  const auto hello = recorded.client.take_output();
  ASSERT_TRUE(recorded.server.receive(hello));
  ASSERT_TRUE(recorded.client.receive(recorded.server.take_output()));
  const auto proof = recorded.client.take_output();

  Handshake server{Role::server, secret, "control"};
  ASSERT_TRUE(server.receive(hello));
  const Status status = server.receive(proof);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::unauthenticated);
}

TEST(Handshake, AServersProofReflectedIsNoClientsProof) {
  const Secret secret = Secret::random();
  Pair pair{secret, secret};
  ASSERT_TRUE(pair.server.receive(pair.client.take_output()));
  const auto reply = pair.server.take_output();
  std::vector<std::byte> reflected(reply.begin(), reply.begin() + 32);
  reflected.insert(reflected.end(), reply.end() - 32, reply.end());
  EXPECT_FALSE(pair.server.receive(reflected));
}

TEST(Handshake, ALowOrderKeyIsRefused) {
  const Secret secret = Secret::random();
  Pair pair{secret, secret};
  auto hello = pair.client.take_output();
  std::memset(hello.data() + 8 + 16 + 32, 0, 32);
  const Status status = pair.server.receive(hello);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::unauthenticated);
}

TEST(Handshake, MovesLikeAValue) {
  const Secret secret = Secret::random();
  Handshake client{Role::client, secret, "tcp"};
  Handshake moved = std::move(client);
  EXPECT_EQ(moved.take_output().size(), Handshake::kHelloSize);
  EXPECT_EQ(moved.wanted(), Handshake::kReplySize);
}

}  // namespace
}  // namespace weft
