#include "base/handshake.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <sodium.h>

#include "base/check.h"

namespace weft {
namespace {

static_assert(std::endian::native == std::endian::little, "the order in memory is the order on the wire");

using Bytes32 = std::array<unsigned char, 32>;
using Magic = std::array<char, 6>;

constexpr std::uint16_t kVersion = 1;
/// No text protocol starts like this, and a text-mode translation would change it.
constexpr Magic kMagic = {'W', 'e', 'f', 't', '\r', '\n'};

struct HelloWire {
  std::uint16_t version;
  Magic magic;
  std::array<char, 16> purpose;  ///< Padded with zeros; the last byte is always zero.
  Bytes32 nonce;
  Bytes32 key;  ///< Ephemeral X25519 public key.
  std::array<unsigned char, 8> reserved;
};
static_assert(sizeof(HelloWire) == Handshake::kHelloSize);

struct ReplyWire {
  std::uint16_t version;
  Magic magic;
  Bytes32 nonce;
  Bytes32 key;
  std::array<unsigned char, 24> reserved;
  Bytes32 proof;  ///< Over the hello and everything of the reply before it.
};
static_assert(sizeof(ReplyWire) == Handshake::kReplySize);
constexpr std::size_t kReplyProvenSize = offsetof(ReplyWire, proof);

struct ProofWire {
  std::uint16_t version;
  Magic magic;
  std::array<unsigned char, 24> reserved;
  Bytes32 proof;  ///< Over the whole hello and the whole reply.
};
static_assert(sizeof(ProofWire) == Handshake::kProofSize);

template <class Wire>
std::vector<std::byte> bytes_of(const Wire& wire) {
  std::vector<std::byte> bytes(sizeof wire);
  std::memcpy(bytes.data(), &wire, sizeof wire);
  return bytes;
}

template <class Wire>
Wire wire_of(std::span<const std::byte> bytes) {
  Wire wire;
  std::memcpy(&wire, bytes.data(), sizeof wire);
  return wire;
}

/// Keyed BLAKE2b over a label and parts; the label keeps one use's result from being another use's.
Bytes32 keyed_hash(const Secret& secret, std::string_view label,
                   std::initializer_list<std::span<const unsigned char>> parts) {
  Bytes32 digest;
  crypto_generichash_state state;
  crypto_generichash_init(&state, reinterpret_cast<const unsigned char*>(secret.bytes().data()), Secret::kSize,
                          digest.size());
  // The label's terminating zero goes in too: no label followed by data reads as a longer label.
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(label.data()), label.size() + 1);
  for (const auto part : parts) crypto_generichash_update(&state, part.data(), part.size());
  crypto_generichash_final(&state, digest.data(), digest.size());
  sodium_memzero(&state, sizeof state);
  return digest;
}

std::span<const unsigned char> octets(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()};
}

Status check_opening(std::uint16_t version, const Magic& magic) {
  if (magic != kMagic) return Error{ErrorCode::unauthenticated, "handshake: the other side does not speak Weft"};
  if (version != kVersion) {
    return Error{ErrorCode::unsupported,
                 fmt::format("handshake: the other side speaks protocol version {}, this side {}", version, kVersion),
                 "Use the same release of Weft on every rank"};
  }
  return {};
}

Error wrong_proof(std::string_view who) {
  return Error{ErrorCode::unauthenticated, fmt::format("handshake: the {} did not prove the job's secret", who),
               "Check that every rank of the job has the same secret, and that the address belongs to this job"};
}

}  // namespace

struct Handshake::State {
  enum class Step : std::uint8_t { awaits_hello, awaits_reply, awaits_proof, complete, failed };

  Role role;
  Secret secret;
  std::array<char, 16> purpose{};
  Step step;
  Bytes32 own_public{};
  Bytes32 own_private{};
  Bytes32 send_key{};
  Bytes32 receive_key{};
  std::vector<std::byte> hello;
  std::vector<std::byte> reply;
  std::vector<std::byte> output;

  State(Role own_role, const Secret& job_secret)
      : role(own_role), secret(job_secret), step(own_role == Role::client ? Step::awaits_reply : Step::awaits_hello) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    sodium_memzero(own_private.data(), own_private.size());
    sodium_memzero(send_key.data(), send_key.size());
    sodium_memzero(receive_key.data(), receive_key.size());
  }

  void write_hello() {
    HelloWire wire{};
    wire.version = kVersion;
    wire.magic = kMagic;
    wire.purpose = purpose;
    randombytes_buf(wire.nonce.data(), wire.nonce.size());
    wire.key = own_public;
    hello = bytes_of(wire);
    output = hello;
  }

  Bytes32 server_proof() const {
    return keyed_hash(secret, "weft server proof 1", {octets(hello), octets(reply).first(kReplyProvenSize)});
  }
  Bytes32 client_proof() const { return keyed_hash(secret, "weft client proof 1", {octets(hello), octets(reply)}); }

  /// Fresh keys from the ephemeral exchange, bound to the secret and to everything that was said.
  Status agree_keys(const Bytes32& other_public) {
    Bytes32 receive;
    Bytes32 send;
    const int answer = role == Role::client
                           ? crypto_kx_client_session_keys(receive.data(), send.data(), own_public.data(),
                                                           own_private.data(), other_public.data())
                           : crypto_kx_server_session_keys(receive.data(), send.data(), own_public.data(),
                                                           own_private.data(), other_public.data());
    if (answer != 0) return Error{ErrorCode::unauthenticated, "handshake: the other side sent an unusable key"};
    send_key = keyed_hash(secret, "weft stream key 1", {send, octets(hello), octets(reply)});
    receive_key = keyed_hash(secret, "weft stream key 1", {receive, octets(hello), octets(reply)});
    sodium_memzero(send.data(), send.size());
    sodium_memzero(receive.data(), receive.size());
    sodium_memzero(own_private.data(), own_private.size());
    return {};
  }

  Status take_hello(std::span<const std::byte> bytes) {
    hello.assign(bytes.begin(), bytes.end());
    const auto wire = wire_of<HelloWire>(bytes);
    ReplyWire answer{};
    answer.version = kVersion;
    answer.magic = kMagic;
    if (auto opening = check_opening(wire.version, wire.magic); !opening) {
      // A Weft of another version learns which one this is, so that both sides can name both; nothing else is said.
      if (opening.error().code() == ErrorCode::unsupported) output = bytes_of(answer);
      return opening;
    }
    if (wire.purpose != purpose) {
      return Error{ErrorCode::unauthenticated,
                   fmt::format("handshake: the other side asks for another purpose than \"{}\"", purpose.data()),
                   "Check that the address and port are those of this service"};
    }
    randombytes_buf(answer.nonce.data(), answer.nonce.size());
    answer.key = own_public;
    reply = bytes_of(answer);
    answer.proof = server_proof();
    reply = bytes_of(answer);
    WEFT_TRY(agree_keys(wire.key));
    output = reply;
    step = Step::awaits_proof;
    return {};
  }

  Status take_reply(std::span<const std::byte> bytes) {
    reply.assign(bytes.begin(), bytes.end());
    const auto wire = wire_of<ReplyWire>(bytes);
    WEFT_TRY(check_opening(wire.version, wire.magic));
    if (sodium_memcmp(server_proof().data(), wire.proof.data(), wire.proof.size()) != 0) return wrong_proof("server");
    WEFT_TRY(agree_keys(wire.key));
    ProofWire proof{};
    proof.version = kVersion;
    proof.magic = kMagic;
    proof.proof = client_proof();
    output = bytes_of(proof);
    step = Step::complete;
    return {};
  }

  Status take_proof(std::span<const std::byte> bytes) {
    const auto wire = wire_of<ProofWire>(bytes);
    WEFT_TRY(check_opening(wire.version, wire.magic));
    if (sodium_memcmp(client_proof().data(), wire.proof.data(), wire.proof.size()) != 0) return wrong_proof("client");
    step = Step::complete;
    return {};
  }

  Status take(std::span<const std::byte> bytes) {
    switch (step) {
      case Step::awaits_hello: return take_hello(bytes);
      case Step::awaits_reply: return take_reply(bytes);
      case Step::awaits_proof: return take_proof(bytes);
      case Step::complete:
      case Step::failed: break;
    }
    return Error{ErrorCode::closed, "handshake: it is over"};
  }
};

Handshake::Handshake(Role role, const Secret& secret, std::string_view purpose)
    : state_(std::make_unique<State>(role, secret)) {
  WEFT_CHECK(sodium_init() >= 0, "libsodium initialises");
  WEFT_CHECK(!purpose.empty() && purpose.size() < state_->purpose.size(), "a purpose has 1 to 15 characters");
  std::memcpy(state_->purpose.data(), purpose.data(), purpose.size());
  crypto_kx_keypair(state_->own_public.data(), state_->own_private.data());
  if (role == Role::client) state_->write_hello();
}

Handshake::~Handshake() = default;
Handshake::Handshake(Handshake&&) noexcept = default;
Handshake& Handshake::operator=(Handshake&&) noexcept = default;

std::size_t Handshake::wanted() const noexcept {
  switch (state_->step) {
    case State::Step::awaits_hello: return kHelloSize;
    case State::Step::awaits_reply: return kReplySize;
    case State::Step::awaits_proof: return kProofSize;
    case State::Step::complete:
    case State::Step::failed: break;
  }
  return 0;
}

std::vector<std::byte> Handshake::take_output() { return std::exchange(state_->output, {}); }

Status Handshake::receive(std::span<const std::byte> bytes) {
  WEFT_CHECK(bytes.size() == wanted(), "receive() gets exactly wanted() bytes");
  Status status = state_->take(bytes);
  if (!status) state_->step = State::Step::failed;
  return status;
}

bool Handshake::is_complete() const noexcept { return state_->step == State::Step::complete; }

Handshake::Keys Handshake::keys() const {
  WEFT_CHECK(is_complete(), "keys exist only after both proofs");
  Keys keys;
  std::memcpy(keys.send.data(), state_->send_key.data(), keys.send.size());
  std::memcpy(keys.receive.data(), state_->receive_key.data(), keys.receive.size());
  return keys;
}

}  // namespace weft
