#pragma once

#include <cstdint>
#include <span>

#include "collectives/plan/plan.h"

namespace weft::collectives::plan {

/// How many chunks `buffer` of `rank` has under the names that a plan may use: in place, the smaller of two buffers
/// that share memory has none. Wider than a chunk number, so that absurd plans can be found. Thread: any.
std::uint64_t num_chunks(const Plan& plan, Rank rank, Buffer buffer) noexcept;

/// The one name that a plan uses for these bytes: in place, the name through the larger buffer (of all_reduce, reduce,
/// broadcast and barrier: the output). `location` is inside its buffer. Thread: any.
Location canonical(const Contract& contract, std::uint32_t parts_per_block, Location location) noexcept;

/// True if the contract lets the plan write to `location`. Output and scratch always; input only in place and only
/// where the output lies, or anywhere in the input of reduce_scatter (in place, the rest of it is consumed).
bool is_writable(const Contract& contract, std::uint32_t parts_per_block, const Location& location) noexcept;

/// The locations that a step reads, as many as its kind has. Valid as long as `reads` lives.
struct Reads {
  Location at[2];
  std::size_t count = 0;
  [[nodiscard]] std::span<const Location> all() const noexcept { return {at, count}; }
};
Reads reads_of(const Step& step) noexcept;
/// True if the step has a destination.
constexpr bool writes(StepKind kind) noexcept { return kind != StepKind::send; }

}  // namespace weft::collectives::plan
