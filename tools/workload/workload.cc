#include "tools/workload/workload.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "tools/read_file.h"

namespace weft::tools {

Result<Workload> read_workload(const std::string& path) {
  WEFT_TRY_ASSIGN(const std::string text, read_file(path, "workload"));
  const std::string_view content = trimmed(text);
  return content.starts_with('{') ? parse_json_workload(text, path) : parse_aicb_trace(text, path);
}

Result<Workload> fold(const Workload& workload, RankCount ranks) {
  Workload folded{workload.name, workload.type, {}, {}, workload.left_out};
  auto epoch_end = workload.epoch_ends.begin();
  for (std::size_t i = 0; i <= workload.operations.size(); ++i) {
    for (; epoch_end != workload.epoch_ends.end() && *epoch_end == i; ++epoch_end) {
      folded.epoch_ends.push_back(folded.operations.size());
    }
    if (i == workload.operations.size()) break;
    Operation operation = workload.operations[i];
    const std::uint32_t wanted = operation.group_size.value_or(ranks.value());
    if (wanted == 1) continue;
    operation.group_size = std::min(wanted, ranks.value());
    if (ranks.value() % *operation.group_size != 0) {
      return Error(ErrorCode::invalid_argument,
                   fmt::format("folding {} onto {} ranks: operation {} ({}, stage {}) has groups of {}",
                               in_quotes(workload.name), ranks.value(), i, name_of(operation.collective),
                               in_quotes(operation.stage), wanted),
                   "Use a number of ranks that its groups divide");
    }
    folded.operations.push_back(std::move(operation));
  }
  return folded;
}

}  // namespace weft::tools
