// A workload's communication, step after step.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>

#include "base/units.h"
#include "tools/bench/context.h"
#include "tools/bench/measure.h"
#include "tools/workload/workload.h"

namespace weft::tools {
namespace {

using CommunicatorPointer = std::unique_ptr<weft_communicator_t, weft_status_t (*)(weft_communicator_t*)>;

/// Calls that are alike: their times of one step are added up.
struct Kind {
  std::string label;
  collectives::Collective collective = collectives::Collective::all_reduce;
  std::uint32_t group = 0;
  std::uint64_t size_bytes = 0;  ///< Of the message that is sent, scaled and in whole elements.
  std::uint64_t calls = 0;       ///< A step.
  std::size_t operation = 0;     ///< In Play::operations.
};

/// A workload made ready on this rank.
struct Play {
  std::map<std::uint32_t, CommunicatorPointer> groups;  ///< By size; all ranks are not among them.
  std::vector<Kind> kinds;
  std::vector<CollectiveCall> operations;                    ///< By kind.
  std::vector<std::pair<std::size_t, std::uint64_t>> order;  ///< Kind and repetitions, as the workload has them.
};

std::uint64_t scaled(std::uint64_t size_bytes, double scale) {
  return static_cast<std::uint64_t>(std::max(1.0, std::round(static_cast<double>(size_bytes) * scale)));
}

Result<weft_communicator_t*> group_of(BenchContext& context, Play& play, std::uint32_t size) {
  if (size == context.ranks) return context.communicator;
  auto found = play.groups.find(size);
  if (found == play.groups.end()) {
    weft_communicator_t* communicator = nullptr;
    WEFT_TRY(checked(weft_split(context.communicator, static_cast<std::int32_t>(context.rank / size),
                                static_cast<std::int32_t>(context.rank), &communicator)));
    found = play.groups.emplace(size, CommunicatorPointer{communicator, weft_destroy}).first;
  }
  return found->second.get();
}

std::uint64_t count_for(const tools::Workload& workload, const auto& operation, std::uint32_t group, double scale) {
  return block_count(operation.collective, scaled(operation.size_bytes, scale), device::size_of(workload.type), group);
}

std::uint64_t largest_message(const BenchContext& context, const tools::Workload& workload) {
  std::uint64_t largest = 8;
  for (const auto& operation : workload.operations) {
    const std::uint32_t group = operation.group_size.value_or(context.ranks);
    const std::uint64_t count = count_for(workload, operation, group, context.options.scale);
    largest = std::max(largest, message_bytes(operation.collective, count, device::size_of(workload.type), group));
  }
  return largest;
}

Status prepare(BenchContext& context, const tools::Workload& workload, const BenchMemory& memory, Play& play) {
  std::map<std::tuple<std::string, collectives::Collective, std::uint32_t, std::uint64_t>, std::size_t> known;
  for (const auto& operation : workload.operations) {
    const std::uint32_t group = operation.group_size.value_or(context.ranks);
    const std::uint64_t count = count_for(workload, operation, group, context.options.scale);
    const auto [found, is_new] =
        known.try_emplace({operation.stage, operation.collective, group, count}, play.kinds.size());
    if (is_new) {
      WEFT_TRY_ASSIGN(weft_communicator_t* const communicator, group_of(context, play, group));
      const std::uint64_t bytes = message_bytes(operation.collective, count, device::size_of(workload.type), group);
      play.kinds.push_back({operation.stage, operation.collective, group, bytes, 0, play.operations.size()});
      play.operations.emplace_back(communicator, memory,
                                   CollectiveCall::Spec{operation.collective, collectives::Placement::out_of_place,
                                                        count, workload.type, context.options.ops.front(), 0});
    }
    play.kinds[found->second].calls += operation.count;
    play.order.emplace_back(found->second, operation.count);
  }
  return {};
}

/// Times of `steps` steps: kinds.size() + 1 a step, the last for all of it. The longest over the ranks.
Result<std::vector<double>> play_steps(BenchContext& context, const Play& play, std::uint64_t steps) {
  const Clock& clock = steady_clock();
  const std::size_t width = play.kinds.size() + 1;
  std::vector<double> times(steps * width);
  for (std::uint64_t step = 0; step < steps; ++step) {
    double* const row = times.data() + step * width;
    // In training the ranks come from computing at about the same time.
    WEFT_TRY(checked(weft_barrier(context.communicator)));
    const Nanos step_start = clock.now();
    Nanos start = step_start;
    for (const auto& [kind, repetitions] : play.order) {
      for (std::uint64_t i = 0; i < repetitions; ++i) {
        if (const weft_status_t status = play.operations[kind].run(); status != WEFT_SUCCESS) {
          return checked(status).error().within("workload, " + play.kinds[kind].label);
        }
      }
      const Nanos end = clock.now();
      row[kind] += static_cast<double>((end - start).count());
      start = end;
    }
    row[width - 1] = static_cast<double>((start - step_start).count());
  }
  if (!times.empty()) {
    WEFT_TRY(
        checked(weft_all_reduce(context.communicator, times.data(), times.data(), times.size(), WEFT_F64, WEFT_MAX)));
  }
  return times;
}

Result<std::uint64_t> check_all(BenchContext& context, Play& play) {
  std::uint64_t wrong = 0;
  for (Kind& kind : play.kinds) {
    const auto group = play.groups.find(kind.group);
    weft_communicator_t* const communicator = group == play.groups.end() ? context.communicator : group->second.get();
    WEFT_TRY_ASSIGN(const std::uint64_t own, check_once(communicator, play.operations[kind.operation]));
    wrong += own;
  }
  return sum_over_ranks(context.communicator, wrong);
}

WorkloadRun summarize(const std::string& name, const Play& play, std::span<const double> times) {
  const std::size_t width = play.kinds.size() + 1;
  const auto column = [&](std::size_t index) {
    std::vector<double> values;
    for (std::size_t i = index; i < times.size(); i += width) values.push_back(times[i]);
    return times_of(std::move(values));
  };
  const Times step = column(width - 1);
  WorkloadRun run{name, step.median_us, step.p99_us, {}};
  for (std::size_t i = 0; i < play.kinds.size(); ++i) {
    const Kind& kind = play.kinds[i];
    const Times of_kind = column(i);
    const std::string label = kind.calls > 1 ? fmt::format("{} x {}", kind.label, kind.calls) : kind.label;
    run.steps.push_back(
        {label, std::string{name_of(kind.collective)}, kind.size_bytes, of_kind.median_us, of_kind.p99_us});
  }
  return run;
}

void say_run(const BenchContext& context, const Play& play, const WorkloadRun& run) {
  context.say("#{:>14} {:>6} {:>12} {:>12} {:>12} {:>8}  {}", "collective", "ranks", "size", "time", "p99", "algbw",
              "operation");
  context.say("#{:>14} {:>6} {:>12} {:>12} {:>12} {:>8}", "", "", "(B)", "(us a step)", "(us a step)", "(GB/s)");
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const WorkloadStep& step = run.steps[i];
    const Kind& kind = play.kinds[i];
    context.say(" {:>14} {:>6} {:>12} {:>12.1f} {:>12.1f} {:>8.3f}  {}", step.collective, kind.group, step.size_bytes,
                step.median_us, step.p99_us, gigabytes_per_second(step.size_bytes * kind.calls, step.median_us),
                step.label);
  }
  context.say("# communication of a step: median {:.1f} us, p99 {:.1f} us", run.step_median_us, run.step_p99_us);
}

}  // namespace

Status bench_workload(BenchContext& context, const std::string& path) {
  const BenchOptions& options = context.options;
  WEFT_TRY_ASSIGN(const tools::Workload read, read_workload(path));
  WEFT_TRY_ASSIGN(const tools::Workload workload, fold(read, RankCount{context.ranks}));
  if (workload.operations.empty())
    return Error{ErrorCode::invalid_argument, workload.name + " has nothing to play for these ranks"};
  if (options.subject == Subject::workload) context.report.data_type = device::name_of(workload.type);
  context.say("#\n# workload {}: {} operations a step over {} ranks, {}, {} steps after {} warm-ups", workload.name,
              workload.operations.size(), context.ranks, device::name_of(workload.type), options.steps,
              options.warm_ups);
  context.say("# sizes {}; operations one after the other, without computing in between",
              options.scale == 1 ? "as in the file" : fmt::format("scaled by {}", options.scale));
  for (const LeftOut& left_out : workload.left_out) {
    context.say("# left out, no collective: {} x {}", left_out.what, left_out.count);
  }
  WEFT_TRY_ASSIGN(const BenchMemory memory, BenchMemory::create(options.memory, largest_message(context, workload)));
  Play play;
  WEFT_TRY(prepare(context, workload, memory, play));
  if (options.is_checked) {
    WEFT_TRY_ASSIGN(const std::uint64_t wrong, check_all(context, play));
    context.wrong += wrong;
  }
  WEFT_TRY(play_steps(context, play, options.warm_ups));
  WEFT_TRY_ASSIGN(const std::vector<double> times, play_steps(context, play, options.steps));
  if (options.is_checked) {
    WEFT_TRY_ASSIGN(const std::uint64_t wrong, check_all(context, play));
    context.wrong += wrong;
  }
  WorkloadRun run = summarize(workload.name, play, times);
  say_run(context, play, run);
  if (options.scale != 1)
    context.report.notes.push_back(fmt::format("sizes of {} scaled by {}", workload.name, options.scale));
  context.report.workloads.push_back(std::move(run));
  return {};
}

}  // namespace weft::tools
