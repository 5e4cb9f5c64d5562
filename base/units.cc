#include "base/units.h"

#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/text.h"

namespace weft {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t kMaxBytes = std::numeric_limits<std::int64_t>::max();
constexpr std::string_view kBytesUnits = "KMGT";

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
char upper(char c) noexcept { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

/// The number whole + fraction / scale.
struct Decimal {
  std::uint64_t whole = 0;
  std::uint64_t fraction = 0;
  std::uint64_t scale = 1;
};

enum class Whole : std::uint8_t { fits, none, too_large };

/// Moves the digits at the front of `text` into `value`.
Whole take_digits(std::string_view& text, std::uint64_t& value) noexcept {
  if (text.empty() || !is_digit(text[0])) return Whole::none;
  Wide sum = 0;
  for (; !text.empty() && is_digit(text[0]); text.remove_prefix(1)) {
    sum = sum * 10 + static_cast<unsigned>(text[0] - '0');
    if (sum > kMaxBytes) return Whole::too_large;
  }
  value = static_cast<std::uint64_t>(sum);
  return Whole::fits;
}

Error not_bytes(std::string_view text) {
  return Error{ErrorCode::malformed, fmt::format("{} is not a size", in_quotes(text)),
               "Write a number with K, M, G or T (powers of 1024), as in 64K"};
}

Error not_duration(std::string_view text) {
  return Error{ErrorCode::malformed, fmt::format("{} is not a duration", in_quotes(text)),
               "Write a number with ns, us, ms, s, m or h, as in 1.5s, or inf"};
}

struct DurationUnit {
  std::string_view name;
  std::uint64_t nanos;
};
constexpr std::array<DurationUnit, 7> kDurationUnits{{{"", 1'000'000'000},
                                                      {"ns", 1},
                                                      {"us", 1'000},
                                                      {"ms", 1'000'000},
                                                      {"s", 1'000'000'000},
                                                      {"m", 60'000'000'000},
                                                      {"h", 3'600'000'000'000}}};

}  // namespace

Result<std::uint64_t> parse_bytes(std::string_view text) {
  std::string_view rest = trimmed(text);
  std::uint64_t number = 0;
  const Whole whole = take_digits(rest, number);
  if (whole == Whole::none) return not_bytes(text);
  const Error too_large{ErrorCode::out_of_range, fmt::format("the size {} is over 2^63 - 1 bytes", in_quotes(text))};
  if (whole == Whole::too_large) return too_large;

  unsigned shift = 0;
  if (!rest.empty()) {
    const auto unit = kBytesUnits.find(upper(rest[0]));
    if (unit != std::string_view::npos) {
      shift = 10 * (static_cast<unsigned>(unit) + 1);
      rest.remove_prefix(1);
    }
  }
  const bool has_suffix = rest == "B" || rest == "b" || (shift > 0 && (rest == "iB" || rest == "ib"));
  if (!rest.empty() && !has_suffix) return not_bytes(text);
  if (number > kMaxBytes >> shift) return too_large;
  return number << shift;
}

std::string format_bytes(std::uint64_t size_bytes) {
  std::size_t power = 0;
  while (size_bytes != 0 && size_bytes % 1024 == 0 && power < kBytesUnits.size()) {
    size_bytes /= 1024;
    ++power;
  }
  if (power == 0) return std::to_string(size_bytes);
  return std::to_string(size_bytes) + kBytesUnits[power - 1];
}

Result<Nanos> parse_duration(std::string_view text) {
  std::string_view rest = trimmed(text);
  if (rest == "inf") return Nanos::max();
  Error too_large{ErrorCode::out_of_range, fmt::format("the duration {} is over 292 years", in_quotes(text)),
                  "Write inf for no limit"};

  Decimal number;
  const Whole whole = take_digits(rest, number.whole);
  if (whole == Whole::too_large) return too_large;
  if (!rest.empty() && rest[0] == '.') {
    rest.remove_prefix(1);
    if (rest.empty() || !is_digit(rest[0])) return not_duration(text);
    for (; !rest.empty() && is_digit(rest[0]); rest.remove_prefix(1)) {
      // 10^15 of an hour is under a nanosecond: further digits say nothing.
      if (number.scale >= 1'000'000'000'000'000) continue;
      number.fraction = number.fraction * 10 + static_cast<unsigned>(rest[0] - '0');
      number.scale *= 10;
    }
  } else if (whole == Whole::none) {
    return not_duration(text);
  }

  for (const DurationUnit& unit : kDurationUnits) {
    if (rest != unit.name) continue;
    const Wide nanos = Wide{number.whole} * unit.nanos + Wide{number.fraction} * unit.nanos / number.scale;
    // The maximum itself means "inf".
    if (nanos >= static_cast<Wide>(Nanos::max().count())) return too_large;
    return Nanos{static_cast<std::int64_t>(nanos)};
  }
  return not_duration(text);
}

std::string format_duration(Nanos duration) {
  if (duration == Nanos::max()) return "inf";
  const auto count = static_cast<double>(duration.count());
  if (std::abs(count) < 1000) return fmt::format("{} ns", duration.count());
  // Three significant digits; a value that would round to 1000 belongs to the next unit.
  constexpr std::array<std::string_view, 3> kUnits{"us", "ms", "s"};
  double value = count / 1e3;
  std::size_t unit = 0;
  while (std::abs(value) >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1e3;
    ++unit;
  }
  const double size = std::abs(value);
  const int decimals = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, kUnits[unit]);
}

}  // namespace weft
