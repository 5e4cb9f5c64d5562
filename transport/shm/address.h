#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "transport/shm/layout.h"

namespace weft::transport::shm {

/// Which process of which host this is, as the kernel tells it. None of it proves anything: it only says early, and
/// in words, why two processes cannot share memory. The proof is the token that is read back from the segment.
struct ProcessPlace {
  std::array<std::byte, 16> boot_id{};  ///< Differs between running kernels.
  std::uint64_t pid_namespace = 0;      ///< A pid means something only inside of one.
  std::uint32_t pid = 0;
  std::uint64_t start_time = 0;  ///< Of the process, so that a reused pid is told from the old one.
};

/// Errors: unsupported — /proc is not there.
Result<ProcessPlace> own_place();

/// When process `pid` started, in the kernel's ticks. Errors: unsupported — no such process here.
Result<std::uint64_t> start_time_of(std::uint32_t pid);

/// What Transport::address() holds.
struct Address {
  ProcessPlace place;
  std::uint32_t fd = 0;  ///< Of the control segment.
  SegmentToken token{};
};
std::vector<std::byte> encode(const Address& address);
/// Errors: malformed; unsupported — another version.
Result<Address> decode_address(std::span<const std::byte> bytes);

/// What the owner of `own` writes for the owner of `other`: only who knows both tokens can make it, and the value of
/// the other direction differs. Source: keyed BLAKE2b (libsodium crypto_generichash).
PairProof prove(const SegmentToken& own, const SegmentToken& other) noexcept;

}  // namespace weft::transport::shm
