#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::tools {

/// One line of a description: "processor" — "2 x AMD EPYC".
struct Fact {
  std::string name;
  std::string value;
};

/// A host and the ranks on it.
struct ReportHost {
  std::string name;
  std::vector<std::uint32_t> ranks;
};

/// How one rank reaches another, and why not in a better way.
struct PairTransport {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::string transport;
  std::string reason;
};

/// Which algorithm a collective used for messages of first_bytes <= size <= last_bytes, and why.
struct AlgorithmChoice {
  std::string collective;
  std::uint64_t first_bytes = 0;
  std::uint64_t last_bytes = 0;
  std::string algorithm;
  std::string reason;
};

/// One size of a series. Bandwidths in GB/s (10^9 bytes), computed as docs/results_schema.md says.
struct Measurement {
  std::uint64_t size_bytes = 0;
  std::uint64_t iterations = 0;
  double median_us = 0;
  double p99_us = 0;
  double min_us = 0;
  double algbw_gbs = 0;
  double busbw_gbs = 0;
  std::uint64_t wrong = 0;  ///< Values that did not have the expected result.
};

/// What one collective did over sizes, ascending.
struct Series {
  std::string collective;
  bool in_place = false;
  std::vector<Measurement> measurements;
};

/// What the machine allows; drawn as a dashed line where it has the number that the plot shows.
struct Limit {
  std::string name;
  std::string how;  ///< How it was measured.
  std::optional<double> bandwidth_gbs;
  std::optional<double> latency_us;
};

/// One operation (bucket) of a workload's step and its communication time.
struct WorkloadStep {
  std::string label;
  std::string collective;
  std::uint64_t size_bytes = 0;
  double median_us = 0;
  double p99_us = 0;
};

/// A workload that was played.
struct WorkloadRun {
  std::string name;
  double step_median_us = 0;  ///< Communication of one whole step.
  double step_p99_us = 0;
  std::vector<WorkloadStep> steps;
};

/// Everything that one run of the bench says.
struct Report {
  std::string title;
  std::string commit;
  std::string started_at;  ///< For people, with its time zone.
  std::string data_type;
  std::string reduction;
  std::uint32_t ranks = 0;
  std::uint32_t warm_ups = 0;
  bool is_verified = false;  ///< Whether `wrong` was counted.
  std::vector<Fact> machine;
  std::vector<ReportHost> hosts;
  std::vector<PairTransport> pairs;
  std::vector<AlgorithmChoice> algorithms;
  std::vector<Series> series;
  std::vector<Limit> limits;
  std::vector<WorkloadRun> workloads;
  std::vector<std::string> notes;
};

/// A page that needs nothing but itself: plots, tables, light and dark. All texts may be hostile.
/// Numbers that are not finite are shown as a dash and left out of the plots. Thread: any.
std::string render_html(const Report& report);

/// The document of docs/results_schema.md ("weft-results-1"). Numbers that are not finite become null. Thread: any.
std::string to_json(const Report& report);

}  // namespace weft::tools
