// Collectives over a sweep of sizes.
#include <algorithm>

#include "tools/bench/context.h"
#include "tools/bench/measure.h"
#include "tools/bench/table.h"

namespace weft::tools {
namespace {

using collectives::Collective;
using collectives::Placement;

bool wants(const BenchOptions& options, Collective collective, Placement placement) {
  if (placement == Placement::out_of_place) {
    // all_to_all and barrier have no other way.
    return options.placements != Placements::in_place || collective == Collective::all_to_all ||
           collective == Collective::barrier;
  }
  return options.placements != Placements::out_of_place && collective != Collective::all_to_all &&
         collective != Collective::barrier;
}

struct Sweep {
  BenchContext& context;
  const BenchMemory& memory;
  Collective collective;
  device::ReduceOp op;
  Series out_of_place;
  Series in_place;
};

Result<std::optional<Measurement>> measure_one(Sweep& sweep, Placement placement, std::uint64_t count) {
  BenchContext& context = sweep.context;
  if (!wants(context.options, sweep.collective, placement)) return std::optional<Measurement>{};
  CollectiveCall operation{context.communicator,
                           sweep.memory,
                           {sweep.collective, placement, count, context.options.type, sweep.op, context.options.root}};
  WEFT_TRY_ASSIGN(const Measured measured, measure(context.communicator, context.options, operation));
  const std::uint64_t bytes =
      message_bytes(sweep.collective, count, device::size_of(context.options.type), context.ranks);
  const Measurement result = measurement_of(measured, bytes, bus_factor(sweep.collective, context.ranks));
  context.wrong += result.wrong;
  context.best_busbw = std::max(context.best_busbw, result.busbw_gbs);
  (placement == Placement::in_place ? sweep.in_place : sweep.out_of_place).measurements.push_back(result);
  return std::optional{result};
}

Status run_sweep(Sweep& sweep) {
  BenchContext& context = sweep.context;
  const BenchOptions& options = context.options;
  const std::uint64_t type_bytes = device::size_of(options.type);
  const bool is_barrier = sweep.collective == Collective::barrier;
  const bool is_reducing = reduces(sweep.collective) && !is_barrier;
  std::uint64_t last_count = 0;
  for (const std::uint64_t size : sizes_of(options)) {
    const std::uint64_t count = block_count(sweep.collective, size, type_bytes, context.ranks);
    if (count == last_count && !is_barrier) continue;  // Sizes under one element a block are all the same message.
    last_count = count;
    TableRow row;
    row.size_bytes = message_bytes(sweep.collective, count, type_bytes, context.ranks);
    row.count = count;
    row.type = is_barrier ? "none" : std::string{device::name_of(options.type)};
    row.redop = is_reducing ? std::string{device::name_of(sweep.op)} : "none";
    row.root = has_root(sweep.collective) ? std::to_string(options.root) : "-1";
    row.has_busbw = bus_factor(sweep.collective, context.ranks) > 0;
    row.is_checked = options.is_checked && !is_barrier;
    WEFT_TRY_ASSIGN(row.out_of_place, measure_one(sweep, Placement::out_of_place, count));
    WEFT_TRY_ASSIGN(row.in_place, measure_one(sweep, Placement::in_place, count));
    context.say("{}", table_row(row));
    if (is_barrier) break;
  }
  return {};
}

}  // namespace

Status bench_collectives(BenchContext& context) {
  const BenchOptions& options = context.options;
  std::uint64_t largest = 0;
  for (const Collective collective : options.collectives) {
    const std::uint64_t type_bytes = device::size_of(options.type);
    const std::uint64_t count = block_count(collective, options.end_bytes, type_bytes, context.ranks);
    largest = std::max(largest, message_bytes(collective, count, type_bytes, context.ranks));
  }
  WEFT_TRY_ASSIGN(const BenchMemory memory, BenchMemory::create(options.memory, largest));
  for (const Collective collective : options.collectives) {
    context.say("#\n# {}", name_of(collective));
    say_algorithms(context, collective);
    context.say("{}", table_head());
    const bool is_reducing = reduces(collective) && collective != Collective::barrier;
    for (const device::ReduceOp op : options.ops) {
      std::string name{name_of(collective)};
      if (is_reducing && options.ops.size() > 1) name += fmt::format(" {}", device::name_of(op));
      Sweep sweep{context, memory, collective, op, {name, false, {}}, {name, true, {}}};
      WEFT_TRY(run_sweep(sweep));
      for (Series* series : {&sweep.out_of_place, &sweep.in_place}) {
        if (!series->measurements.empty()) context.report.series.push_back(std::move(*series));
      }
      if (!is_reducing) break;
    }
  }
  return {};
}

}  // namespace weft::tools
