#include "tools/bench/table.h"

#include <fmt/format.h>

namespace weft::tools {
namespace {

/// Enough digits for 0.07 us and for seconds.
std::string time_text(double microseconds) {
  return fmt::format("{:.{}f}", microseconds, microseconds < 100 ? 2 : microseconds < 10'000 ? 1 : 0);
}

std::string placement_text(const std::optional<Measurement>& measured, const TableRow& row) {
  if (!measured) return fmt::format(" {:>9} {:>9} {:>7} {:>7} {:>6}", "-", "-", "-", "-", "-");
  return fmt::format(" {:>9} {:>9} {:>7.3f} {:>7} {:>6}", time_text(measured->median_us), time_text(measured->p99_us),
                     measured->algbw_gbs, row.has_busbw ? fmt::format("{:.3f}", measured->busbw_gbs) : "n/a",
                     row.is_checked ? std::to_string(measured->wrong) : "n/a");
}

}  // namespace

Measurement measurement_of(const Measured& measured, std::uint64_t size_bytes, double bus_factor) {
  Measurement result;
  result.size_bytes = size_bytes;
  result.iterations = measured.iterations;
  result.median_us = measured.times.median_us;
  result.p99_us = measured.times.p99_us;
  result.min_us = measured.times.min_us;
  result.algbw_gbs = gigabytes_per_second(size_bytes, measured.times.median_us);
  result.busbw_gbs = result.algbw_gbs * bus_factor;
  result.wrong = measured.wrong;
  return result;
}

std::string table_head() {
  const auto column_names = fmt::format(" {:>9} {:>9} {:>7} {:>7} {:>6}", "time", "p99", "algbw", "busbw", "#wrong");
  const auto units = fmt::format(" {:>9} {:>9} {:>7} {:>7} {:>6}", "(us)", "(us)", "(GB/s)", "(GB/s)", "");
  return fmt::format("#{:<50}  {:^42} {:^42}\n", "", "out-of-place", "in-place") +
         fmt::format("#{:>12} {:>12} {:>9} {:>6} {:>6} {} {}\n", "size", "count", "type", "redop", "root", column_names,
                     column_names) +
         fmt::format("#{:>12} {:>12} {:>9} {:>6} {:>6} {} {}", "(B)", "(elements)", "", "", "", units, units);
}

std::string table_row(const TableRow& row) {
  return fmt::format(" {:>12} {:>12} {:>9} {:>6} {:>6} {} {}", row.size_bytes, row.count, row.type, row.redop, row.root,
                     placement_text(row.out_of_place, row), placement_text(row.in_place, row));
}

}  // namespace weft::tools
