#include "tools/bench/bench.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <thread>

#include "tools/bench/context.h"
#include "tools/bench/limits.h"
#include "tools/bench/statistics.h"
#include "tools/commands.h"
#include "tools/machine/version.h"

namespace weft::tools {
namespace {

std::string time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[64] = {};
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %z", &local);
  return text;
}

Status write_file(const std::string& path, const std::string& content) {
  std::ofstream file{path, std::ios::binary};
  file << content;
  file.close();
  if (!file) return Error::from_errno(ErrorCode::system, "writing " + path, errno);
  return {};
}

/// That a file can be made there; nothing is changed.
Status try_file(const std::string& path) {
  const bool is_there = access(path.c_str(), F_OK) == 0;
  if (!std::ofstream{path, std::ios::app}) return Error::from_errno(ErrorCode::system, "writing " + path, errno);
  if (!is_there) (void)std::remove(path.c_str());
  return {};
}

/// Before anything is measured, so that hours are not spent on results that nobody gets.
Status try_outputs(const BenchContext& context, const BenchOutputs& outputs) {
  if (context.rank != 0) return {};
  if (!outputs.json_path.empty()) WEFT_TRY(try_file(outputs.json_path));
  if (outputs.report_dir.empty()) return {};
  if (mkdir(outputs.report_dir.c_str(), 0777) != 0 && errno != EEXIST) {
    return Error::from_errno(ErrorCode::system, "making the folder " + outputs.report_dir, errno);
  }
  WEFT_TRY(try_file(outputs.report_dir + "/results.json"));
  return try_file(outputs.report_dir + "/index.html");
}

Status write_outputs(BenchContext& context, const BenchOutputs& outputs) {
  // The others wait asleep meanwhile, so that the limits are those of the machine and not of what was left of it. All
  // ranks come to the barrier: a launcher may have given --json to rank 0 alone.
  const bool is_wanted = !outputs.json_path.empty() || !outputs.report_dir.empty();
  if (context.rank == 0 && is_wanted) {
    context.report.limits = measure_limits();
    for (const Limit& limit : context.report.limits) {
      context.say("# limit {}: {:.2f} GB/s{} ({})", limit.name, limit.bandwidth_gbs.value_or(0),
                  limit.latency_us ? fmt::format(", {:.2f} us", *limit.latency_us) : "", limit.how);
    }
    if (!outputs.json_path.empty()) WEFT_TRY(write_file(outputs.json_path, to_json(context.report)));
    if (!outputs.report_dir.empty()) {
      WEFT_TRY(write_file(outputs.report_dir + "/results.json", to_json(context.report)));
      WEFT_TRY(write_file(outputs.report_dir + "/index.html", render_html(context.report)));
      context.say("# report: {}/index.html", outputs.report_dir);
    }
  }
  return checked(weft_barrier(context.communicator));
}

Status bench(BenchContext& context, const BenchOutputs& outputs) {
  WEFT_TRY(try_outputs(context, outputs));
  WEFT_TRY_ASSIGN(context.description, describe(context.communicator));
  Report& report = context.report;
  report.title = outputs.title;
  report.commit = commit_text();
  report.started_at = time_now();
  report.data_type = device::name_of(context.options.type);
  report.reduction =
      context.options.ops.size() == 1 ? std::string{device::name_of(context.options.ops.front())} : "all";
  report.ranks = context.ranks;
  report.warm_ups = static_cast<std::uint32_t>(context.options.warm_ups);
  report.is_verified = context.options.is_checked;
  WEFT_TRY(say_header(context));
  report.machine.push_back({"command", outputs.command});
  const BenchOptions& options = context.options;
  switch (options.subject) {
    case Subject::collectives: WEFT_TRY(bench_collectives(context)); break;
    case Subject::ping_pong:
    case Subject::point_to_point: WEFT_TRY(bench_point_to_point(context)); break;
    case Subject::workload: break;
  }
  for (const std::string& path : options.workload_paths) WEFT_TRY(bench_workload(context, path));
  WEFT_TRY(write_outputs(context, outputs));
  return {};
}

/// What rank 0 says at the end; the exit code.
int conclude(const BenchContext& context) {
  const BenchOptions& options = context.options;
  context.say("#");
  if (options.is_checked) context.say("# wrong values: {}{}", context.wrong, context.wrong == 0 ? ", OK" : " FAILED");
  bool is_missed = false;
  if (context.ranks > 1 && options.subject != Subject::workload && context.best_busbw > 0) {
    context.say("# best busbw: {:.3f} GB/s", context.best_busbw);
    is_missed = context.best_busbw < options.threshold_busbw;
    if (is_missed) context.say("# FAILED: the threshold is {} GB/s", options.threshold_busbw);
  }
  return context.rank == 0 && (context.wrong > 0 || is_missed) ? kExitWrong : kExitOk;
}

}  // namespace

int run_bench(const BenchOptions& options, const BenchOutputs& outputs) {
  BenchContext context;
  context.options = options;
  if (weft_create(&context.communicator) != WEFT_SUCCESS) {
    fmt::print(stderr, "weft bench: {}\n", weft_last_error());
    return kExitFailed;
  }
  context.rank = weft_rank(context.communicator);
  context.ranks = weft_size(context.communicator);
  int code = kExitOk;
  if (const Status sensible = check(options, context.ranks); !sensible) {
    // All ranks come to this; one says it, and first, or the launcher ends it before it has.
    if (context.rank == 0) {
      fmt::print(stderr, "weft bench: {}\n", sensible.error().message());
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    code = kExitUsage;
  } else if (const Status done = bench(context, outputs); !done) {
    fmt::print(stderr, "weft bench: rank {}: {}\n", context.rank, done.error().message());
    weft_abort(context.communicator, done.error().message().c_str());
    code = kExitFailed;
  } else {
    code = conclude(context);
  }
  if (weft_destroy(context.communicator) != WEFT_SUCCESS && code == kExitOk) {
    fmt::print(stderr, "weft bench: rank {}: {}\n", context.rank,
               weft_last_error());  // As a trace that was not written.
    code = kExitFailed;
  }
  return code;
}

}  // namespace weft::tools
