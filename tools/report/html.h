#pragma once

#include <cstdint>
#include <string>

namespace weft::tools {

/// "8", "64K", "1536": a size for people, at most one decimal ("1.5M"). Thread: any.
std::string size_label(std::uint64_t size_bytes);

/// "0.12 us", "3.4 ms"; a dash if not finite or negative. Thread: any.
std::string time_label(double microseconds);

/// Three significant digits; a dash if not finite or negative. Thread: any.
std::string number_label(double number);

}  // namespace weft::tools
