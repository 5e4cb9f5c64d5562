#include "tools/report/html.h"

#include <fmt/core.h>

#include <array>
#include <cmath>

namespace weft::tools {

std::string size_label(std::uint64_t size_bytes) {
  constexpr std::array<const char*, 5> kUnits = {"", "K", "M", "G", "T"};
  auto number = static_cast<double>(size_bytes);
  std::size_t unit = 0;
  while (number >= 1024 && unit + 1 < kUnits.size()) {
    number /= 1024;
    ++unit;
  }
  const bool is_whole = number == std::floor(number) || number >= 100;
  return is_whole ? fmt::format("{:.0f}{}", number, kUnits[unit]) : fmt::format("{:.1f}{}", number, kUnits[unit]);
}

std::string number_label(double number) {
  if (!std::isfinite(number) || number < 0) return "–";
  if (number == 0) return "0";
  if (number >= 100) return fmt::format("{:.0f}", number);
  if (number >= 10) return fmt::format("{:.1f}", number);
  return number >= 0.01 ? fmt::format("{:.2f}", number) : fmt::format("{:.2g}", number);
}

std::string time_label(double microseconds) {
  if (!std::isfinite(microseconds) || microseconds < 0) return "–";
  if (microseconds >= 1e6) return number_label(microseconds / 1e6) + " s";
  if (microseconds >= 1e3) return number_label(microseconds / 1e3) + " ms";
  return number_label(microseconds) + " µs";
}

}  // namespace weft::tools
