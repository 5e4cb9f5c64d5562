#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace weft::tools {

inline constexpr std::size_t kFileSizeMax = std::size_t{64} << 20;

/// All of a file that a user named: ordinary, a pipe, or whatever else it turns out to be.
/// Errors: not_found; limit_exceeded — over kFileSizeMax, as devices are that never end; system — a folder, no
/// permission.
///         `what` says what it should be: "workload".
Result<std::string> read_file(const std::string& path, std::string_view what);

}  // namespace weft::tools
