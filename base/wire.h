#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weft {

/// Appends values in the wire order of Weft (little-endian, lengths in 32 bits) to a byte string.
/// Weft runs on little-endian machines only, so the order in memory is the order on the wire.
class ByteWriter {
 public:
  /// One allocation for what is usually written (and gcc 12 warns of an overflow it invents for an empty vector).
  ByteWriter() { bytes_.reserve(64); }
  template <std::unsigned_integral T>
  ByteWriter& number(T value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
    return *this;
  }
  /// Raw bytes, no length in front.
  ByteWriter& raw(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  /// A 32-bit length, then the bytes.
  ByteWriter& blob(std::span<const std::byte> bytes) {
    number(static_cast<std::uint32_t>(bytes.size()));
    return raw(bytes);
  }
  ByteWriter& text(std::string_view value) { return blob(std::as_bytes(std::span(value))); }
  [[nodiscard]] std::vector<std::byte> take() && { return std::move(bytes_); }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads what a ByteWriter wrote, from bytes that may be hostile: every length is checked before use.
/// After the first failure every further read fails and `status()` says where.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  /// The next number, or 0 after a failure.
  template <std::unsigned_integral T>
  T number() {
    T value{};
    const auto bytes = raw(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  /// The next `size_bytes` bytes, or nothing after a failure.
  std::span<const std::byte> raw(std::size_t size_bytes) {
    if (failed_ || size_bytes > bytes_.size() - position_) {
      failed_ = true;
      return {};
    }
    const auto found = bytes_.subspan(position_, size_bytes);
    position_ += size_bytes;
    return found;
  }
  std::span<const std::byte> blob() { return raw(number<std::uint32_t>()); }
  std::string text() {
    const auto bytes = blob();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  [[nodiscard]] bool is_exhausted() const noexcept { return !failed_ && position_ == bytes_.size(); }
  [[nodiscard]] bool has_failed() const noexcept { return failed_; }
  /// Success if everything was read and nothing is left; else `malformed`, naming `what`.
  [[nodiscard]] Status finish(std::string_view what) const {
    if (is_exhausted()) return {};
    return Error{ErrorCode::malformed, std::string(what) + (failed_ ? " is cut short" : " has bytes left over") +
                                           " at byte " + std::to_string(position_)};
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
  bool failed_ = false;
};

}  // namespace weft
