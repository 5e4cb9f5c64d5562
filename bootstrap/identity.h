#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "base/secret.h"
#include "base/settings.h"

namespace weft::bootstrap {

/// Identity::source of a rank that was given a unique id: whoever made the id serves the job.
constexpr std::string_view kUniqueIdSource = "unique id";

/// Who this process is in its job and where the job meets.
struct Identity {
  Rank rank{0};
  std::uint32_t size = 1;
  std::uint32_t local_rank = 0;
  std::uint32_t local_size = 1;
  std::string address;  ///< "host:port" of the service; empty for a job of one rank.
  Secret secret;
  std::string
      source;  ///< Which variables it came from: "WEFT_*", "torchrun", "Open MPI", "PMI (MPICH)", "Slurm", "unique id".
};

/// Finds rank, size, address and secret in the environment. Order: WEFT_RANK/WEFT_SIZE; torchrun (RANK, WORLD_SIZE,
/// LOCAL_RANK, MASTER_ADDR, MASTER_PORT); Open MPI (OMPI_COMM_WORLD_*); PMI (PMI_RANK, PMI_SIZE); Slurm (SLURM_PROCID,
/// SLURM_NTASKS, SLURM_LOCALID). Nothing set: one rank. The first source that is present wins whole; a source that is
/// present in part is an error that names what is missing.
/// Errors: malformed, invalid_argument (rank >= size, no address, no secret; the message says which variable to set).
Result<Identity> identify(const Settings& settings, const Settings::Lookup& environment);

/// Address and secret of a job as opaque bytes that a framework passes around (ncclUniqueId's role).
struct UniqueId {
  static constexpr std::size_t kSize = 128;
  std::array<std::byte, kSize> bytes{};
};

}  // namespace weft::bootstrap
