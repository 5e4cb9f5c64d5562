#pragma once

#include <cstdint>

#include "base/result.h"
#include "collectives/plan/plan.h"

namespace weft::fakes {

/// When the data of a transfer may move.
enum class Movement : std::uint8_t {
  eager,  ///< The source is read at any time after the send started; the send completes alone.
  push,   ///< Both started, then the source is read; the send completes while the data is on its way.
  pull,   ///< Both started; the send completes after the receiver has the data.
};

/// Runs a complete plan once on random numbers, in a random legal schedule: every start, read, write and completion is
/// an event of its own, and memory holds garbage from the beginning of a write to its end. Errors: invalid_argument —
/// the plan is no plan (bounds, matching), gets stuck, writes to the caller's input, or leaves a
///         wrong or (between ranks) a differently rounded result. Shares no code with verify() but the names of
///         buffers.
Status run_schedule(const collectives::plan::Plan& plan, Movement movement, std::uint64_t seed);

/// `num_schedules` of each movement.
Status run_schedules(const collectives::plan::Plan& plan, std::uint32_t num_schedules, std::uint64_t seed);

/// Success if every two conflicting accesses are ordered, found the slow way: the transitive closure of all events.
/// The plan is one that run_schedule() does not refuse. Memory: 2 bits per pair of steps, so only for some 1000 steps.
Status find_race(const collectives::plan::Plan& plan);

/// True if the plan is right, found without verify(): no race, and then one schedule per movement stands for all.
bool is_right(const collectives::plan::Plan& plan, std::uint64_t seed = 1);

}  // namespace weft::fakes
