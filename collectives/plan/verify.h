#pragma once

#include <cstdint>

#include "collectives/plan/plan.h"

namespace weft::collectives::plan {

/// What is known of a plan that is right.
///
/// Its results have the same bits on every rank, in every run and on every transport: the order of every two
/// conflicting accesses is fixed, and ranks that hold the same chunk hold the same expression. Otherwise there is no
/// verdict.
struct Verdict {
  std::uint64_t num_steps = 0;
  std::uint32_t num_transfers = 0;
  /// Transfers on the longest chain of steps that wait for each other.
  std::uint32_t depth = 0;
  /// What the busiest rank sends, in blocks of `count` elements (a part counts as 1/k).
  double max_sent_blocks = 0;
  /// For reductions: true if all chunks join the ranks in the same way, so that the bits of an element depend neither
  /// on where it lies in the buffer nor on the number of elements. True for all others.
  bool is_position_independent = true;
};

/// Proves that a plan fulfils its contract in every schedule, on every transport that keeps the order in plan.h.
///
/// In turn: structure, bounds and matching; that it ends even if no transfer is buffered; that no two conflicting
/// accesses race; that caller's input survives; and then, as all schedules give one result, one run over symbols: no
/// undefined memory is read, no reduction counts a rank twice, every output chunk holds what the contract says, and the
/// same expression on every rank. Errors: invalid_argument — the plan is wrong; the error names step, rank and
/// location. Thread: any. Cost:   linear in steps for plans of PlanBuilder; see check_races().
Result<Verdict> verify(const Plan& plan);

}  // namespace weft::collectives::plan
