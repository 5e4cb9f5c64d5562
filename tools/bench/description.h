#pragma once

#include <weft/weft.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "collectives/shape.h"

namespace weft::tools {

/// What a communicator says about itself (docs/describe.md), as far as the bench shows it.
struct Description {
  struct Peer {
    std::string host;
    std::uint32_t pid = 0;
    std::uint32_t host_index = 0;
    std::string transport;
    std::string link;
    std::string not_taken;
  };
  std::uint32_t rank = 0;
  std::uint32_t hosts = 1;
  std::uint32_t cores_per_host = 0;
  std::string identity;
  std::string kernels;
  std::string waiting;
  std::vector<Peer> peers;                    ///< By rank, the own one included.
  std::vector<std::string> changed_settings;  ///< "WEFT_SPIN=1ms", those that are not the default.

  [[nodiscard]] collectives::Shape shape() const;
};

/// Errors: malformed. Thread: any.
Result<Description> parse_description(const std::string& json);
/// Of this rank. Errors: of weft_describe.
Result<Description> describe(weft_communicator_t* communicator);

/// How a rank reaches another one.
struct Pair {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::string transport;
  std::string not_taken;
};
/// Of all pairs, from each rank's own description. Collective.
Result<std::vector<Pair>> gather_pairs(weft_communicator_t* communicator, const Description& own);

/// The last failure of this thread's weft_ calls as an error; success if `status` is WEFT_SUCCESS.
Status checked(weft_status_t status);

}  // namespace weft::tools
