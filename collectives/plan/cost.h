#pragma once

#include <cstdint>
#include <functional>

#include "base/clock.h"
#include "collectives/plan/plan.h"
#include "collectives/plan/slicing.h"
#include "collectives/shape.h"

namespace weft::collectives::plan {

/// What it costs to move data from one rank to another.
struct LinkCost {
  double latency_ns = 0;    ///< From the end of the sender's post to the first byte at the receiver.
  double bytes_per_ns = 1;  ///< Of one direction of this pair; transfers that share it take turns.
  /// The same for bytes that the sender wrote in this plan, so that they lie modified in its cache; 0: no difference.
  double fresh_bytes_per_ns = 0;
  double per_step_ns = 0;  ///< What a processor does for one end of a transfer, whatever its size.
  /// The receiver's processor moves the bytes (memory that both map); else a device does, and the processor is free.
  bool moved_by_processor = false;
  /// What each end's processor copies into or out of the link (sockets); 0 if it touches no bytes.
  double end_bytes_per_ns = 0;
};

/// What a plan runs on.
struct CostModel {
  std::function<LinkCost(Rank from, Rank to)> link;
  double reduce_bytes_per_ns = 10;  ///< Of one processor: bytes of the result.
  double copy_bytes_per_ns = 10;
  double local_step_ns = 20;  ///< A copy or reduce of no bytes.
  /// How many ranks of one host can compute at the same time; 0 for as many as there are.
  std::uint32_t slots_per_host = 0;
  /// What a slot loses when it turns to another rank (if ranks take turns).
  double switch_ns = 0;
  /// Of all transfers together that leave a host, and of all that enter it; 0 for no limit but the links'.
  double host_bytes_per_ns = 0;
  /// How parts move through the plan.
  SlicingLimits slicing{.slice_bytes = 0};
};

/// Predictions go through at most so many steps of slices; a plan that is too long for that is predicted with whole
/// parts. It has hundreds of steps a rank, which overlap without slices.
inline constexpr std::size_t kMaxSlicedSteps = 1 << 15;

/// How long the plan takes from when all ranks call it until the last is done.
///
/// A rank's processor does one step at a time: of those that are ready sends, then the one that has been so the
/// longest. Ranks of a host share its slots; a rank keeps its slot while it has steps that are ready. A receive takes
/// the processor once its data is there. Of many slices the first are simulated, and the rest follow at the pace of
/// these. Units:  `count_elems` of `elem_size_bytes` each a block. Errors: invalid_argument — the plan is not complete
/// or never ends (see Graph::create), or `shape` is of another size. Thread: any. Cost:   about 0.3 us a step, for each
/// of at most 2 * slicing.in_flight slices.
Result<Nanos> predict(const Plan& plan, const Shape& shape, const CostModel& model, std::uint64_t count_elems,
                      std::uint32_t elem_size_bytes);

}  // namespace weft::collectives::plan
