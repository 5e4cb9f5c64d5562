#include "base/random.h"

#include <sodium.h>

#include "base/check.h"

namespace weft {

void fill_secure_random(std::span<std::byte> bytes) noexcept {
  WEFT_CHECK(sodium_init() >= 0, "libsodium initialises");
  randombytes_buf(bytes.data(), bytes.size());
}

}  // namespace weft
