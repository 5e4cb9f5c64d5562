#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "collectives/contract.h"
#include "device/types.h"

namespace weft::tools {

/// What is measured.
enum class Subject : std::uint8_t { collectives, ping_pong, point_to_point, workload };
enum class Memory : std::uint8_t { plain, allocated };
enum class Placements : std::uint8_t { both, out_of_place, in_place };

/// A run of the bench, as it was asked for.
struct BenchOptions {
  Subject subject = Subject::collectives;
  std::vector<collectives::Collective> collectives;
  std::vector<std::string> workload_paths;  ///< Played after the collectives; of Subject::workload, the only thing.
  std::uint64_t begin_bytes = 8;
  std::uint64_t end_bytes = 64U << 20;
  std::uint64_t factor = 4;
  std::uint64_t step_bytes = 0;  ///< If not 0, sizes grow by this and not by the factor.
  device::DataType type = device::DataType::f32;
  std::vector<device::ReduceOp> ops = {device::ReduceOp::sum};
  std::uint64_t iterations = 0;  ///< 0: as many as fit the budget.
  Nanos budget = std::chrono::milliseconds(250);
  std::uint64_t warm_ups = 5;
  bool is_checked = true;
  std::uint32_t root = 0;
  Memory memory = Memory::plain;
  Placements placements = Placements::both;
  bool wants_pairs = false;    ///< Point to point between all pairs.
  std::uint64_t steps = 10;    ///< Of a workload.
  double scale = 1;            ///< Of a workload's sizes.
  double threshold_busbw = 0;  ///< GB/s that the best row must reach; 0 for none.
};

/// The names that -d, -o and the first argument take, as typed; Errors of both: invalid_argument — says what exists.
Result<std::vector<device::ReduceOp>> parse_ops(const std::string& text);
/// Sets subject, collectives and, for a workload, workload_paths.
Status choose_subject(BenchOptions& options, const std::string& what, const std::string& file);

/// Errors: invalid_argument — the first option that makes no sense for `ranks` ranks. Thread: any.
Status check(const BenchOptions& options, std::uint32_t ranks);

/// The sizes of a sweep, ascending. Thread: any.
std::vector<std::uint64_t> sizes_of(const BenchOptions& options);

}  // namespace weft::tools
