#include "tools/run/line_tagger.h"

#include <algorithm>

namespace weft::tools {

std::string LineTagger::feed(std::string_view bytes) {
  std::string lines;
  while (!bytes.empty()) {
    const std::size_t newline = bytes.find('\n');
    const std::size_t length = std::min(std::min(newline, bytes.size()), kLineMax - partial_.size());
    partial_.append(bytes.substr(0, length));
    bytes.remove_prefix(length);
    if (!bytes.empty() && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      add_line(lines);
    } else if (partial_.size() == kLineMax) {
      add_line(lines);
    }
  }
  return lines;
}

std::string LineTagger::finish() {
  std::string lines;
  if (!partial_.empty()) add_line(lines);
  return lines;
}

void LineTagger::add_line(std::string& lines) {
  lines.append(tag_).append(partial_).push_back('\n');
  partial_.clear();
}

}  // namespace weft::tools
