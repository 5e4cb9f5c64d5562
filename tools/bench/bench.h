#pragma once

#include <string>

#include "tools/bench/options.h"

namespace weft::tools {

/// Where the results go besides standard output; empty for nowhere.
struct BenchOutputs {
  std::string json_path;
  std::string report_dir;
  std::string title;
  std::string command;  ///< The command line, for the record.
};

/// Joins the job of the environment, measures, prints, and writes the results. Collective; Thread: blocking.
/// Returns the exit code (commands.h); wrong results are told by rank 0 alone, or its launcher would blame the first.
int run_bench(const BenchOptions& options, const BenchOutputs& outputs);

}  // namespace weft::tools
