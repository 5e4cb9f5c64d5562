#include "base/secret.h"

#include <sodium.h>

#include "base/check.h"

namespace weft {
namespace {

unsigned char* raw(std::array<std::byte, Secret::kSize>& bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}
const unsigned char* raw(const std::array<std::byte, Secret::kSize>& bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

void ensure_sodium() { WEFT_CHECK(sodium_init() >= 0, "libsodium initialises"); }

}  // namespace

Secret::~Secret() { sodium_memzero(bytes_.data(), bytes_.size()); }

Secret Secret::random() {
  ensure_sodium();
  Secret secret;
  randombytes_buf(secret.bytes_.data(), secret.bytes_.size());
  return secret;
}

Result<Secret> Secret::from_hex(std::string_view text) {
  const auto refuse = [] {
    return Error{ErrorCode::malformed, "a secret is exactly 64 hexadecimal digits", "`openssl rand -hex 32` makes one"};
  };
  if (text.size() != 2 * kSize) return refuse();
  Secret secret;
  std::size_t decoded = 0;
  // Decoding takes the same time for every text, so the secret does not leak through the clock.
  const int answer =
      sodium_hex2bin(raw(secret.bytes_), kSize, text.data(), text.size(), /*ignore=*/nullptr, &decoded, nullptr);
  if (answer != 0 || decoded != kSize) return refuse();
  return secret;
}

Secret Secret::from_bytes(const std::array<std::byte, kSize>& bytes) {
  Secret secret;
  secret.bytes_ = bytes;
  return secret;
}

std::string Secret::to_hex() const {
  std::string text(2 * kSize + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), raw(bytes_), kSize);
  text.pop_back();  // sodium_bin2hex writes a final zero.
  return text;
}

Secret Secret::derive(std::string_view purpose) const {
  ensure_sodium();
  static constexpr std::string_view kDomain = "weft derived secret 1:";
  Secret derived;
  crypto_generichash_state state;
  crypto_generichash_init(&state, raw(bytes_), kSize, kSize);
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(kDomain.data()), kDomain.size());
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(purpose.data()), purpose.size());
  crypto_generichash_final(&state, raw(derived.bytes_), kSize);
  sodium_memzero(&state, sizeof state);
  return derived;
}

bool operator==(const Secret& a, const Secret& b) noexcept {
  return sodium_memcmp(a.bytes_.data(), b.bytes_.data(), Secret::kSize) == 0;
}

}  // namespace weft
