#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/secret.h"

namespace weft {

/// Mutual proof of the job's secret on a fresh byte stream, without I/O of its own (the owner moves the bytes), and the
/// keys for an encrypted stream afterwards. Three messages of fixed size, so a stranger costs one bounded read:
///   client -> server  HelloWire   version, purpose, nonce, ephemeral X25519 key
///   server -> client  ReplyWire   version, nonce, ephemeral key, proof over the transcript
///   client -> server  ProofWire   proof over the transcript
/// Each proof is keyed BLAKE2b over (role, purpose, transcript) with the secret: neither side can be
/// replayed or reflected, and the session keys are fresh for each connection.
/// Source: libsodium crypto_generichash, crypto_kx; docs/wire_format.md has the byte layout.
class Handshake {
 public:
  enum class Role : std::uint8_t { client, server };
  static constexpr std::size_t kHelloSize = 96;
  static constexpr std::size_t kReplySize = 128;
  static constexpr std::size_t kProofSize = 64;

  /// `purpose` is at most 15 characters and must be the same on both sides ("control", "tcp").
  Handshake(Role role, const Secret& secret, std::string_view purpose);
  ~Handshake();
  Handshake(Handshake&&) noexcept;
  Handshake& operator=(Handshake&&) noexcept;

  /// How many bytes the next receive() wants; 0 when nothing more comes.
  [[nodiscard]] std::size_t wanted() const noexcept;
  /// Bytes to send now (empty if it is the other side's turn). Call after construction and after each receive().
  [[nodiscard]] std::vector<std::byte> take_output();
  /// Takes exactly wanted() bytes.
  /// Errors: unauthenticated — not Weft, another purpose, or a wrong proof; unsupported — another protocol version.
  [[nodiscard]] Status receive(std::span<const std::byte> bytes);
  /// True once both proofs were checked on this side (the client: after the reply; the server: after the proof).
  [[nodiscard]] bool is_complete() const noexcept;

  /// Directional keys for an encrypted stream, equal on both sides with the directions exchanged. Only if complete.
  struct Keys {
    std::array<std::byte, 32> send;
    std::array<std::byte, 32> receive;
  };
  [[nodiscard]] Keys keys() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft
