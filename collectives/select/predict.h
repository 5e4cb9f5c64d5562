#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/result.h"
#include "collectives/algorithms/algorithm.h"
#include "collectives/select/machine.h"

namespace weft::collectives::select {

/// Up to this many ranks, an algorithm's plan is made and simulated. A plan may have n^2 steps, at about 0.4 us each:
/// 64 ranks cost 7 ms, 1024 would cost seconds and gigabytes.
inline constexpr std::uint32_t kMaxSimulatedRanks = 64;

/// How long a call with blocks of `count` elements takes with this algorithm.
///
/// Beyond kMaxSimulatedRanks, 16, 32 and 64 ranks are simulated, as many to a host as there are in proportion, and the
/// growth from one doubling to the next goes on: by equal steps (log2 n rounds), by doubled ones (n rounds), or
/// between. Errors: unsupported — it cannot plan the request. Thread: any.
Result<Nanos> predict(const algorithms::Algorithm& algorithm, const algorithms::Request& request, std::uint64_t count,
                      std::uint32_t type_bytes, const Machine& machine);

}  // namespace weft::collectives::select
