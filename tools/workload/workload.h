#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collectives/contract.h"
#include "device/types.h"

namespace weft::tools {

/// One communication call of a workload, perhaps repeated.
struct Operation {
  collectives::Collective collective = collectives::Collective::all_reduce;
  /// How many ranks take part; nullopt = all there are.
  std::optional<std::uint32_t> group_size;
  /// Of the whole message: what all ranks hold together for all_gather, gather, reduce_scatter, scatter and all_to_all,
  /// the buffer of one rank for the others. May exceed 2^32.
  std::uint64_t size_bytes = 0;
  std::string stage;        ///< Where in the step, as the source names it, or which bucket.
  std::uint64_t count = 1;  ///< How many times in a row; at least 1.

  friend bool operator==(const Operation&, const Operation&) = default;
};

/// Something of a trace that is no collective and hence is not in the operations ("isend", "computation").
struct LeftOut {
  std::string what;
  std::uint64_t count = 0;

  friend bool operator==(const LeftOut&, const LeftOut&) = default;
};

/// The communication of a training step, in order.
struct Workload {
  std::string name;
  device::DataType type = device::DataType::f32;
  std::vector<Operation> operations;
  /// Positions in `operations` before which an epoch ended, ascending.
  std::vector<std::size_t> epoch_ends;
  std::vector<LeftOut> left_out;
};

/// Reads a workload file: a JSON document of tensors ("weft-workload-1", docs/workloads.md), whose gradients are
/// bucketed into all-reduces, or an AICB trace (CSV). Which of the two, its first character tells.
/// Thread: blocking.
/// Errors: not_found — no such file; system — it cannot be read; malformed — it follows neither format: the message has
///         file, line and column, or for a well-formed JSON document the path of the wrong value ("tensors[3].shape");
///         limit_exceeded — it is larger than 64 MiB.
Result<Workload> read_workload(const std::string& path);

/// The same from text; `name` stands for the file in messages. Thread: any.
Result<Workload> parse_json_workload(std::string_view text, const std::string& name);
Result<Workload> parse_aicb_trace(std::string_view text, const std::string& name);

/// The workload as `ranks` ranks can run it: larger groups become all ranks, groups of one are dropped (nothing
/// is sent), smaller groups stay, several of them side by side. Sizes stay as they are.
/// Errors: invalid_argument — a group's size does not divide the number of ranks; names the operation.
Result<Workload> fold(const Workload& workload, RankCount ranks);

}  // namespace weft::tools
