#include "tools/workload/workload.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "base/text.h"

namespace weft::tools {
namespace {

constexpr std::size_t kMaxFileBytes = 64U << 20;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

Result<std::string> read_file(const std::string& path) {
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (!file) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::not_found : ErrorCode::system;
    return Error::from_errno(code, "opening the workload " + in_quotes(path, 256), errno);
  }
  std::string text;
  char block[1 << 16];
  std::size_t got = 0;
  while ((got = std::fread(block, 1, sizeof block, file.get())) > 0) {
    text.append(block, got);
    if (text.size() > kMaxFileBytes) {
      return Error(ErrorCode::limit_exceeded, "reading the workload " + in_quotes(path, 256),
                   fmt::format("A workload has at most {} MiB", kMaxFileBytes >> 20));
    }
  }
  if (std::ferror(file.get()) != 0) {
    return Error::from_errno(ErrorCode::system, "reading the workload " + in_quotes(path, 256), errno);
  }
  return text;
}

}  // namespace

Result<Workload> read_workload(const std::string& path) {
  WEFT_TRY_ASSIGN(const std::string text, read_file(path));
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
