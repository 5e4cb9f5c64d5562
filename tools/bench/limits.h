#pragma once

#include <vector>

#include "tools/report/report.h"

namespace weft::tools {

/// What this machine allows, measured now: a copy of 64 MiB, a reduction of memory that two processes map, and one TCP
/// stream over loopback. Takes about half a second. Errors make a limit missing. Thread: blocking.
std::vector<Limit> measure_limits();

}  // namespace weft::tools
