#include "bootstrap/records.h"

#include <cstring>

#include <fmt/format.h>
#include <sodium.h>

#include "base/check.h"

namespace weft::bootstrap {
namespace {

constexpr std::uint16_t kVersion = 1;
constexpr std::uint16_t kContinues = 1;

static_assert(kRecordTagSize == crypto_aead_chacha20poly1305_ietf_ABYTES);

using Nonce = std::array<unsigned char, crypto_aead_chacha20poly1305_ietf_NPUBBYTES>;

/// Each direction has its own fresh key, so a counter never meets the same key twice.
Nonce nonce_of(std::uint64_t count) {
  Nonce nonce{};
  std::memcpy(nonce.data(), &count, sizeof count);
  return nonce;
}

unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* raw(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }

}  // namespace

Result<RecordHeader> decode_record_header(std::span<const std::byte> bytes) {
  if (bytes.size() != kRecordHeaderSize) return Error{ErrorCode::malformed, "a record's header is cut short"};
  RecordHeaderWire wire;
  std::memcpy(&wire, bytes.data(), sizeof wire);
  if (wire.version != kVersion) {
    return Error{ErrorCode::unsupported, fmt::format("a record has version {}, not {}", wire.version, kVersion),
                 "Use the same release of Weft on every rank"};
  }
  if ((wire.flags & ~kContinues) != 0) return Error{ErrorCode::malformed, "a record has unknown flags"};
  if (wire.size_bytes < kRecordTagSize || wire.size_bytes > kRecordPayloadSizeMax + kRecordTagSize) {
    return Error{ErrorCode::malformed, fmt::format("a record announces {} bytes", wire.size_bytes)};
  }
  return RecordHeader{wire.size_bytes, (wire.flags & kContinues) != 0};
}

RecordSealer::~RecordSealer() { sodium_memzero(key_.data(), key_.size()); }

std::vector<std::byte> RecordSealer::seal(std::span<const std::byte> payload, Position position) {
  WEFT_CHECK(payload.size() <= kRecordPayloadSizeMax, "a long message is cut into records before it is sealed");
  RecordHeaderWire wire{};
  wire.version = kVersion;
  wire.flags = position == Position::more_follows ? kContinues : 0;
  wire.size_bytes = static_cast<std::uint32_t>(payload.size() + kRecordTagSize);
  std::vector<std::byte> record(kRecordHeaderSize + wire.size_bytes);
  std::memcpy(record.data(), &wire, sizeof wire);
  const Nonce nonce = nonce_of(count_++);
  crypto_aead_chacha20poly1305_ietf_encrypt(raw(record.data() + kRecordHeaderSize), nullptr, raw(payload.data()),
                                            payload.size(), raw(record.data()), kRecordHeaderSize, nullptr,
                                            nonce.data(), raw(key_.data()));
  return record;
}

RecordOpener::~RecordOpener() { sodium_memzero(key_.data(), key_.size()); }

Status RecordOpener::open(std::span<const std::byte> header, std::span<const std::byte> sealed,
                          std::vector<std::byte>& message) {
  const std::size_t size_before = message.size();
  const Nonce nonce = nonce_of(count_++);
  if (sealed.size() >= kRecordTagSize) {
    message.resize(size_before + sealed.size() - kRecordTagSize);
    const int answer = crypto_aead_chacha20poly1305_ietf_decrypt(raw(message.data() + size_before), nullptr, nullptr,
                                                                 raw(sealed.data()), sealed.size(), raw(header.data()),
                                                                 header.size(), nonce.data(), raw(key_.data()));
    if (answer == 0) return {};
    message.resize(size_before);
  }
  return Error{ErrorCode::unauthenticated, "a record was changed on its way or is not the next one"};
}

}  // namespace weft::bootstrap
