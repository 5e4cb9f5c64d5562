#pragma once

#include <weft/weft.h>

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "tools/bench/collective_call.h"
#include "tools/bench/options.h"
#include "tools/bench/statistics.h"

namespace weft::tools {

/// What one row of the table says.
struct Measured {
  Times times;
  std::uint64_t iterations = 0;
  std::uint64_t wrong = 0;  ///< Over all ranks.
};

/// Calls `once` again and again and times each call; the time of an iteration is the longest over the ranks. Equal on
/// all ranks. Collective. Errors: of `once`, and of weft's own exchanges.
Result<Measured> time_calls(weft_communicator_t* communicator, const BenchOptions& options,
                            const std::function<weft_status_t()>& once);

/// The same for a collective, whose result is checked before and after, outside of what is timed.
Result<Measured> measure(weft_communicator_t* communicator, const BenchOptions& options, CollectiveCall& operation);

/// Runs the collective once and counts this rank's wrong elements; no rank leaves before all have counted. Collective.
Result<std::uint64_t> check_once(weft_communicator_t* communicator, CollectiveCall& operation);

/// The sum over all ranks, on all ranks. Collective.
Result<std::uint64_t> sum_over_ranks(weft_communicator_t* communicator, std::uint64_t own);

}  // namespace weft::tools
