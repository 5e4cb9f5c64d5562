#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "collectives/engine/call.h"
#include "collectives/engine/layout.h"
#include "collectives/plan/plan.h"
#include "collectives/plan/slicing.h"
#include "device/host/kernels.h"

namespace weft::collectives::engine {

/// One place of a lowered step: a part of a block of one of the three buffers.
struct Operand {
  plan::Buffer buffer = plan::Buffer::input;
  std::uint64_t begin_bytes = 0;  ///< Where the part begins; in the scratch area of a slice.
};

/// A step of one rank, lowered to bytes. Steps of one program are stored in one flat array.
struct ProgramStep {
  plan::StepKind kind = plan::StepKind::copy;
  std::uint16_t num_before = 0;  ///< Steps that complete before this one starts.
  std::uint32_t peer = 0;
  std::uint32_t transfer = 0;
  std::uint32_t first_after = 0;  ///< Program::after[first_after .. +num_after) start once this one is complete.
  std::uint32_t num_after = 0;
  std::uint64_t part_elems = 0;  ///< Elements of the whole part; a slice takes its share.
  Operand source, second, destination;
  device::Stores stores = device::Stores::cached;  ///< How the CPU writes the destination.
  device::ReduceFunction reduce = nullptr;         ///< The CPU's, of a step that reduces.
};

/// How a part is cut into slices that move through the whole plan independently of each other.
///
/// Every step acts element by element, so the plan holds for each slice on its own: slice s of every part depends only
/// on slice s of other parts. Pipelining is therefore nothing but several slices in flight, and a slice that fits the
/// cache makes the next step's reads cheap.
struct Slicing {
  std::uint32_t num_slices = 1;
  std::uint32_t in_flight = 1;  ///< Slices whose steps may run at the same time.
  std::uint64_t slice_bytes_max = 0;
};

/// What one rank does in one collective call of given type and count: flat, immutable, cached.
struct Program {
  Call call;
  std::string label;  ///< For people: the call, "all_reduce(count 1024, float, sum)".
  std::string algorithm;
  std::uint64_t plan_id = 0;  ///< Equal on all ranks that run the same plan and slicing.
  std::uint32_t signature = 0;
  CallWire wire;  ///< The call as other ranks are told.
  std::uint32_t element_size = 1;
  std::uint32_t num_transfers = 0;
  std::uint64_t input_bytes = 0, output_bytes = 0;
  std::uint64_t scratch_bytes = 0;  ///< Of one slice in flight.
  Slicing slicing;
  std::vector<ProgramStep> steps;
  std::vector<std::uint32_t> after;             ///< Successor lists of all steps, one after the other.
  std::vector<std::uint32_t> step_of_transfer;  ///< This rank's send or receive of each transfer, or kNoStep.
  /// Output parts that this rank divides for avg, in elements: {begin, size}.
  std::vector<Range> averaged;

  static constexpr std::uint32_t kNoStep = 0xffffffff;

  /// The elements of slice `slice` inside a part of `part_elems` elements.
  [[nodiscard]] Range slice_of(std::uint64_t part_elems, std::uint32_t slice) const noexcept {
    if (slicing.num_slices == 1) return {0, part_elems};
    return part_of(part_elems, slicing.num_slices, slice, line_unit(element_size));
  }
};

/// Lowers the steps of `rank` of a plan (complete or focused on that rank) to a program.
/// `plan_id` must be equal on all ranks: hash_of(plan) of a complete plan, or a number for the algorithm's name.
/// Errors: out_of_range — the buffers would be larger than an address space.
Result<std::unique_ptr<Program>> lower(const plan::Plan& plan, std::uint64_t plan_id, const Call& call, Rank rank,
                                       plan::SlicingLimits limits);

/// The program of one half of a send/receive pair: a single transfer of `call.count` elements.
std::unique_ptr<Program> point_to_point_program(const Call& call, plan::StepKind kind, Rank peer,
                                                plan::SlicingLimits limits);

}  // namespace weft::collectives::engine
