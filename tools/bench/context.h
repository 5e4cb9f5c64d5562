#pragma once

#include <weft/weft.h>

#include <cstdint>
#include <cstdio>

#include <fmt/format.h>

#include "tools/bench/description.h"
#include "tools/bench/options.h"
#include "tools/report/report.h"

namespace weft::tools {

/// A run of the bench under way.
struct BenchContext {
  weft_communicator_t* communicator = nullptr;
  BenchOptions options;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  Description description;
  Report report;            ///< Complete on rank 0.
  std::uint64_t wrong = 0;  ///< So far, over all ranks.
  double best_busbw = 0;    ///< GB/s, of all rows.

  /// One line of the output; only rank 0 speaks.
  template <class... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) const {
    if (rank != 0) return;
    fmt::print("{}\n", fmt::format(format, std::forward<Args>(args)...));
    std::fflush(stdout);
  }
};

/// Each measures its part, prints it, and adds it to the report. Collective. Errors: of the communication.
Status bench_collectives(BenchContext& context);
Status bench_point_to_point(BenchContext& context);
Status bench_workload(BenchContext& context, const std::string& path);

/// Says who takes part, where, over what, and how it is measured.
Status say_header(BenchContext& context);
/// Says which algorithm serves which sizes of this collective.
void say_algorithms(BenchContext& context, collectives::Collective collective);

}  // namespace weft::tools
