#include "tools/read_file.h"

#include <cerrno>
#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "base/text.h"

namespace weft::tools {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

Result<std::string> read_file(const std::string& path, std::string_view what) {
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rbe"));
  if (!file) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::not_found : ErrorCode::system;
    return Error::from_errno(code, fmt::format("opening the {} {}", what, in_quotes(path, 256)), errno);
  }
  std::string text;
  char block[1 << 16];
  std::size_t got = 0;
  while ((got = std::fread(block, 1, sizeof block, file.get())) > 0) {
    text.append(block, got);
    if (text.size() > kFileSizeMax) {
      return Error(ErrorCode::limit_exceeded, fmt::format("reading the {} {}", what, in_quotes(path, 256)),
                   fmt::format("A {} has at most {} MiB", what, kFileSizeMax >> 20));
    }
  }
  if (std::ferror(file.get()) != 0) {
    return Error::from_errno(ErrorCode::system, fmt::format("reading the {} {}", what, in_quotes(path, 256)), errno);
  }
  return text;
}

}  // namespace weft::tools
