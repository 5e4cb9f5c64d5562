#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/report/report.h"

namespace weft::tools {

/// What kind of machine this is: processor, cores, caches, memory, kernel. Thread: any.
std::vector<Fact> machine_facts();

/// What the system allows, tried and not guessed, with what it means for Weft.
struct Finding {
  std::string name;
  std::string value;
  bool is_good = true;
  std::string verdict;  ///< What to do if it is not.
};
/// Limits, interfaces, and the system calls that transports use. Thread: any.
std::vector<Finding> system_findings();

/// The first line of a file, trimmed; empty if there is none.
std::string first_line(const std::string& path);

}  // namespace weft::tools
