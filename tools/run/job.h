#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace weft::tools {

enum class Binding : std::uint8_t { none, core };
enum class Tags : std::uint8_t { off, on };

/// What `weft run` starts.
struct JobOptions {
  std::uint32_t ranks = 1;
  std::uint32_t hosts = 1;  ///< Emulated by WEFT_HOST_ID, or those of WEFT_TEST_HOSTS.
  Binding binding = Binding::none;
  Tags tags = Tags::on;
  Nanos timeout = Nanos::max();
  std::string output_dir;  ///< Empty for none.
  std::vector<std::string> command;
};

/// Errors: invalid_argument — the options contradict each other. Thread: any.
Status check(const JobOptions& options);

/// Starts the ranks on this machine, waits for them and leaves none behind. Thread: blocking; before others are
/// started. Says on standard error what went wrong; returns the exit code (see commands.h).
int run_job(const JobOptions& options);

}  // namespace weft::tools
