#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/bench/measure.h"
#include "tools/report/report.h"

namespace weft::tools {

/// What a row of the table and of the report says of one placement.
Measurement measurement_of(const Measured& measured, std::uint64_t size_bytes, double bus_factor);

/// The lines above a table of nccl-tests' columns, with the 99th percentile added.
std::string table_head();
/// One row. A placement that was not measured is shown as dashes, and so is a bandwidth without meaning (`has_busbw`),
/// as "n/a".
struct TableRow {
  std::uint64_t size_bytes = 0;
  std::uint64_t count = 0;
  std::string type;
  std::string redop;
  std::string root;
  bool has_busbw = true;
  bool is_checked = true;
  std::optional<Measurement> out_of_place;
  std::optional<Measurement> in_place;
};
std::string table_row(const TableRow& row);

}  // namespace weft::tools
