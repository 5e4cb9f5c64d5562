#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace weft {

/// Reads a size as nccl-tests and UCX write it: "8", "64K", "1M", "2G", "1T", optionally with "B" or "iB".
/// K, M, G, T are powers of 1024. Surrounding blanks are ignored.
/// Errors: malformed — not such a text; out_of_range — over 2^63 - 1.
Result<std::uint64_t> parse_bytes(std::string_view text);

/// The shortest exact form: 8, 1.5K is never printed (1536), 64K, 25M.
std::string format_bytes(std::uint64_t size_bytes);

/// Reads a duration: "500us", "20ms", "1.5s", "2m", "1h"; a bare number is seconds; "inf" is Nanos::max().
/// Errors: malformed, out_of_range.
Result<Nanos> parse_duration(std::string_view text);

/// For people: "870 ns", "12.3 us", "4.56 ms", "1.20 s".
std::string format_duration(Nanos duration);

}  // namespace weft
