#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace weft::collectives {

/// What is known of one rank of a group.
struct RankRecord {
  std::string host;  ///< For people; nothing is decided by it.
  std::uint32_t pid = 0;
  std::string boot_id;  ///< Of the running kernel.
  /// The IPC name space and the device of /dev/shm: who gave processes different ones wants them apart, as hosts are.
  std::string memory_domain;
  std::string host_id;  ///< WEFT_HOST_ID: ranks with different ones never try to share memory.
  std::vector<std::uint64_t> cores;
};

/// The record of this process, whose WEFT_HOST_ID is `host_id`. Thread: any.
RankRecord own_record(std::string host_id);

/// What the ranks of a group tell each other first.
struct Introduction {
  RankRecord record;
  std::string common;  ///< Settings that all must share, as the text that is compared.
};

std::vector<std::byte> encode(const Introduction& introduction);
/// Errors: unsupported — of another version; malformed. Thread: any.
Result<Introduction> decode_introduction(std::span<const std::byte> bytes);

}  // namespace weft::collectives
