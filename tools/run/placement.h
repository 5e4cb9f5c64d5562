#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weft::tools {

/// A host that scripts/test_hosts.sh made: name spaces that a process holds.
struct TestHost {
  std::string name;
  std::string address;
  std::uint32_t holder_pid = 0;
};

/// Reads WEFT_TEST_HOSTS: "name=address=pid name=address=pid ...". Errors: malformed. Thread: any.
Result<std::vector<TestHost>> parse_test_hosts(std::string_view text);

/// Where one rank runs.
struct Place {
  std::uint32_t host = 0;
  std::uint32_t local_rank = 0;
  std::uint32_t local_size = 1;
};

/// `ranks` ranks on `hosts` hosts, neighbours together; if it does not divide, the first hosts have one more.
/// hosts <= ranks. Thread: any.
std::vector<Place> place_ranks(std::uint32_t ranks, std::uint32_t hosts);

/// The file that execvp would run for `command`: itself if it has a slash, else the first executable in `path` ($PATH).
/// Errors: not_found; system — it exists and cannot be executed. Thread: any.
Result<std::string> find_program(std::string_view command, std::string_view path);

/// What of the environment (entries "NAME=value") a rank gets: all but `removed_names` and those set anew, then
/// `entries`.
std::vector<std::string> merged_environment(char** environment, const std::vector<std::string>& entries,
                                            const std::vector<std::string>& removed_names);

}  // namespace weft::tools
