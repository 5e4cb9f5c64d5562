#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/handshake.h"
#include "base/result.h"

namespace weft::bootstrap {

/// Encrypted records on a control connection: a header in clear, then ChaCha20-Poly1305 (IETF) of the payload, with the
/// header authenticated and the nonce counted up per direction, so that nothing can be changed, dropped, repeated or
/// reordered unnoticed. A message is one record, or several of which all but the last say that more follows.
/// Source: RFC 8439; libsodium crypto_aead_chacha20poly1305_ietf.
struct RecordHeaderWire {
  std::uint16_t version;
  std::uint16_t flags;       ///< Bit 0: the message goes on in the next record.
  std::uint32_t size_bytes;  ///< Of what follows: payload and tag.
};
static_assert(sizeof(RecordHeaderWire) == 8);

constexpr std::size_t kRecordHeaderSize = sizeof(RecordHeaderWire);
constexpr std::size_t kRecordTagSize = 16;
constexpr std::size_t kRecordPayloadSizeMax = std::size_t{1} << 20;

/// What a checked header says.
struct RecordHeader {
  std::size_t size_bytes = 0;  ///< Of payload and tag: what is to be read next.
  bool continues = false;
};

/// Errors: malformed — another size or unknown flags; unsupported — another version. Pure.
Result<RecordHeader> decode_record_header(std::span<const std::byte> bytes);

/// The sending half of a connection. Thread: one at a time.
class RecordSealer {
 public:
  explicit RecordSealer(const std::array<std::byte, 32>& key) : key_(key) {}
  ~RecordSealer();
  RecordSealer(const RecordSealer&) = delete;
  RecordSealer& operator=(const RecordSealer&) = delete;

  enum class Position : std::uint8_t { more_follows, last };
  /// Header, ciphertext and tag of at most kRecordPayloadSizeMax bytes of payload.
  [[nodiscard]] std::vector<std::byte> seal(std::span<const std::byte> payload, Position position);

 private:
  std::array<std::byte, 32> key_;
  std::uint64_t count_ = 0;
};

/// The receiving half. Thread: one at a time.
class RecordOpener {
 public:
  explicit RecordOpener(const std::array<std::byte, 32>& key) : key_(key) {}
  ~RecordOpener();
  RecordOpener(const RecordOpener&) = delete;
  RecordOpener& operator=(const RecordOpener&) = delete;

  /// Appends the payload of one record to `message`.
  /// Shape:  `header` are the kRecordHeaderSize bytes that decode_record_header accepted, `sealed` what they announced.
  /// Errors: unauthenticated — the record was changed on its way, or is not the next one; `message` is as before.
  [[nodiscard]] Status open(std::span<const std::byte> header, std::span<const std::byte> sealed,
                            std::vector<std::byte>& message);

 private:
  std::array<std::byte, 32> key_;
  std::uint64_t count_ = 0;
};

}  // namespace weft::bootstrap
