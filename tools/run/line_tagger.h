#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weft::tools {

/// Turns the bytes that one process writes into whole lines with a tag in front, so that the lines of several
/// processes never mix. A line may contain any bytes. Thread: one at a time.
class LineTagger {
 public:
  /// A longer line is cut into lines of this size, so that one without end costs bounded memory.
  static constexpr std::size_t kLineMax = 64 * 1024;

  explicit LineTagger(std::string tag) : tag_(std::move(tag)) {}

  /// The lines that `bytes` completed; empty if none.
  std::string feed(std::string_view bytes);
  /// What is left when the process wrote its last byte: a line of its own, with a newline.
  std::string finish();

 private:
  void add_line(std::string& lines);

  std::string tag_;
  std::string partial_;
};

}  // namespace weft::tools
