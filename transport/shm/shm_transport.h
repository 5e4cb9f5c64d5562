#pragma once

#include <cstdint>
#include <memory>

#include "base/ids.h"
#include "base/result.h"
#include "transport/transport.h"

namespace weft::transport::shm {

/// How memory that was not allocated as shared crosses between processes (WEFT_SHM_COPY).
enum class PlainCopy : std::uint8_t {
  automatic,  ///< As `readv` where it was seen to work in both directions, else as `staging`.
  staging,    ///< Through messages.
  readv,      ///< process_vm_readv; where it does not work: staging, and a line in the log.
};

struct ShmOptions {
  Rank rank;
  /// A hint: how many ranks this host has, this one included. More than that is fine, the rings were made larger then.
  std::uint32_t num_local_ranks = 2;
  PlainCopy plain_copy = PlainCopy::automatic;
};

/// The transport between processes of one host: messages in rings of shared memory, large payloads by loading from the
/// peer's memory. Nothing has a name and nothing is left behind, however the processes end.
/// Errors: limit_exceeded — memory or open files, with what is needed; unsupported — /proc is missing.
Result<std::unique_ptr<Transport>> make_shm_transport(ShmOptions options);

}  // namespace weft::transport::shm
