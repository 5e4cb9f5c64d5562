#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "collectives/plan/plan.h"

namespace weft::collectives::plan {

/// What a text may ask for. A plan's memory, and that of verifying it, is bounded by these and by the text's own
/// length.
struct TextLimits {
  std::uint32_t max_ranks = 16384;
  std::uint64_t max_steps = 1U << 20;
  /// Of all buffers of all ranks: all_to_all over 2048 ranks fits.
  std::uint64_t max_chunks = 1U << 24;
};

/// A plan as text, for people, for golden files, and for plans that users write:
///
///     weft-plan 1
///     name ring
///     collective all_reduce
///     ranks 2
///     root 0
///     placement out_of_place
///     parts 2
///     lanes 1
///     transfers 4
///     rank 0 scratch 0
///       0 send t0 input[0.0] to 1
///       1 receive_reduce t1 output[0.1] = input[0.1] op from 1
///       2 send t2 output[0.1] to 1 after 1
///       3 receive t3 output[0.0] from 1
///     rank 1 scratch 0
///       ...
///
/// A location is buffer[block.part]; `lane N` follows the peer if it is not 0; the other steps are
/// `copy output[0.0] = input[0.0]` and `reduce output[0.0] = input[0.0] op scratch[0.0]`. Lines that are blank or begin
/// with # say nothing. A name is printed without control characters, and its blanks as one; everything else is kept
/// exactly. Thread: any.
std::string to_text(const Plan& plan);

/// The plan that a text describes. It is well-formed, but may be wrong: verify() says.
/// Errors: malformed — not such a text; limit_exceeded — it is over `limits`; both name the line.
/// Thread: any.
Result<Plan> parse_plan(std::string_view text, const TextLimits& limits = {});

}  // namespace weft::collectives::plan
