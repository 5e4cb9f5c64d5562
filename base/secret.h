#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace weft {

/// The 256-bit secret that the ranks of one job share. Whoever proves it belongs to the job.
/// It is never logged; comparison is constant-time; the bytes are wiped on destruction.
class Secret {
 public:
  static constexpr std::size_t kSize = 32;
  /// All zero; proves nothing. Use random() or from_hex().
  Secret() = default;
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret();

  static Secret random();
  /// Exactly 64 hex digits. Errors: malformed (the message does not repeat the text).
  static Result<Secret> from_hex(std::string_view text);
  /// From bytes that another part kept safe (a unique id).
  static Secret from_bytes(const std::array<std::byte, kSize>& bytes);
  [[nodiscard]] std::string to_hex() const;
  /// A secret derived for one purpose ("data", "control", ...), so that no proof can be replayed for another.
  [[nodiscard]] Secret derive(std::string_view purpose) const;

  [[nodiscard]] const std::array<std::byte, kSize>& bytes() const noexcept { return bytes_; }
  friend bool operator==(const Secret& a, const Secret& b) noexcept;

 private:
  std::array<std::byte, kSize> bytes_{};
};

}  // namespace weft
