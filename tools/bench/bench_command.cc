#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/cores.h"
#include "base/text.h"
#include "base/units.h"
#include "tools/bench/bench.h"
#include "tools/commands.h"
#include "tools/run/job.h"

namespace weft::tools {
namespace {

/// The arguments as they were typed.
struct Arguments {
  std::string what;
  std::string file;
  std::vector<std::string> workloads;
  std::string begin = "8";
  std::string end = "64M";
  std::uint64_t factor = 4;
  std::string step;
  std::string type = "float";
  std::string op = "sum";
  std::uint64_t iterations = 0;
  std::string budget = "250ms";
  std::int64_t warm_ups = -1;
  int check = 1;
  std::uint32_t root = 0;
  std::string memory = "plain";
  std::string placement = "both";
  bool wants_pairs = false;
  std::uint64_t steps = 10;
  double scale = 1;
  double threshold_busbw = 0;
  std::string transport;
  std::uint32_t ranks = 0;
  std::uint32_t gpus = 1;
  std::uint32_t hosts = 1;
  BenchOutputs outputs;
};

constexpr const char* kFooter =
    "Sizes are of the larger of a rank's two buffers (8, 64K, 1M). Without -n, as many iterations as fit --budget.\n"
    "  algbw = size / time                                 10^9 bytes per second\n"
    "  busbw = algbw * 2(n-1)/n                            all_reduce\n"
    "          algbw * (n-1)/n                             all_gather, reduce_scatter, all_to_all, gather, scatter\n"
    "          algbw                                       broadcast, reduce, send and receive\n"
    "busbw compares with the speed of a link where every rank has one to a flat network; with one rank it has no "
    "meaning,\n"
    "and where ranks share a host's port or memory it is a number to compare runs with.\n"
    "p2p: send_recv is half a round trip; one_way and both_ways keep up to 16 messages under way.\n"
    "Exit codes: 0 fine, 1 wrong values or threshold missed, 2 wrong usage, 3 the job failed.\n\n"
    "Examples:\n"
    "  weft bench all_reduce -N 2                          two ranks of this machine\n"
    "  weft bench all -N 4 --hosts 2 -e 1M                 four ranks, as if on two hosts\n"
    "  weft bench p2p -N 2 --report weft-report            with a page to look at\n"
    "  weft bench workload workloads/resnet50.json -N 2\n"
    "  srun -N 8 weft bench all_reduce -b 1K -e 1G -f 2    within a job of another launcher";

void add_options(CLI::App& command, Arguments& a) {
  command
      .add_option("what", a.what,
                  "all_reduce, reduce, broadcast, all_gather, reduce_scatter, gather, scatter, all_to_all, "
                  "barrier, all; p2p, send_recv; workload")
      ->required();
  command.add_option("file", a.file, "The workload's file");
  command.add_option("-b,--minbytes", a.begin, "Smallest size")->capture_default_str();
  command.add_option("-e,--maxbytes", a.end, "Largest size")->capture_default_str();
  auto* const factor =
      command.add_option("-f,--stepfactor", a.factor, "Sizes grow by this factor")->capture_default_str();
  command.add_option("-i,--stepbytes", a.step, "Sizes grow by so many bytes")->excludes(factor);
  command
      .add_option("-d,--datatype", a.type, "int8, uint8, int32, uint32, int64, uint64, half, bfloat16, float, double")
      ->capture_default_str();
  command.add_option("-o,--op", a.op, "sum, prod, min, max, avg, all")->capture_default_str();
  command.add_option("-n,--iters", a.iterations, "Iterations of each size (0: by --budget)")->capture_default_str();
  command.add_option("--budget", a.budget, "Time for each size")->capture_default_str();
  command.add_option("-w,--warmup_iters", a.warm_ups, "Warm-ups (5; 2 steps of a workload)")
      ->check(CLI::NonNegativeNumber);
  command.add_option("-c,--check", a.check, "Check results: 1 or 0")->check(CLI::Range(0, 1))->capture_default_str();
  command.add_option("-r,--root", a.root, "Root of broadcast, reduce, gather, scatter")->capture_default_str();
  command.add_option("--memory", a.memory, "plain, or allocated by weft_memory_allocate")
      ->check(CLI::IsMember({"plain", "allocated"}))
      ->capture_default_str();
  command.add_option("--in-place", a.placement, "both, out (of place only), only (in place)")
      ->check(CLI::IsMember({"both", "out", "only"}))
      ->capture_default_str();
  command.add_flag("--pairs", a.wants_pairs, "p2p between all pairs: latency at -b and bandwidth at -e as matrices");
  command.add_option("--steps", a.steps, "Steps of a workload")->capture_default_str();
  command.add_option("--workload", a.workloads, "Play this workload after the collectives (may be repeated)");
  command.add_option("--scale", a.scale, "Scale a workload's sizes")->capture_default_str();
  command.add_option("--threshold-busbw", a.threshold_busbw, "Fail if the best busbw is less (GB/s)");
  command.add_option("--transport", a.transport, "Allowed transports (sets WEFT_TRANSPORTS)");
  command.add_option("--json", a.outputs.json_path, "Write the results there (docs/results_schema.md)");
  command.add_option("--report", a.outputs.report_dir, "Write results.json and index.html to this folder");
  command.add_option("-N,--ranks", a.ranks, "Start so many ranks on this machine, as weft run does")
      ->check(CLI::Range(1, 4096));
  // On most command lines of nccl-tests. There it is the number of GPUs of a thread, and one is what a rank has.
  command.add_option("-g,--ngpus", a.gpus, "Only 1: a rank for each device is started by -N or a launcher")
      ->check(CLI::Range(1, 1));
  command.add_option("--hosts", a.hosts, "With -N: as weft run --hosts")->capture_default_str();
}

Result<BenchOptions> options_from(const Arguments& a) {
  BenchOptions options;
  WEFT_TRY(choose_subject(options, a.what, a.file));
  WEFT_TRY_ASSIGN(options.begin_bytes, parse_bytes(a.begin));
  WEFT_TRY_ASSIGN(options.end_bytes, parse_bytes(a.end));
  options.workload_paths.insert(options.workload_paths.end(), a.workloads.begin(), a.workloads.end());
  options.factor = a.factor;
  if (!a.step.empty()) {
    WEFT_TRY_ASSIGN(options.step_bytes, parse_bytes(a.step));
    if (options.step_bytes == 0) return Error{ErrorCode::invalid_argument, "-i must be more than 0"};
  }
  const auto type = device::parse_data_type(a.type);
  if (!type) {
    return Error{ErrorCode::invalid_argument, "unknown type " + in_quotes(a.type),
                 "there are int8, uint8, int32, uint32, int64, uint64, half, bfloat16, float, double"};
  }
  options.type = *type;
  WEFT_TRY_ASSIGN(options.ops, parse_ops(a.op));
  options.iterations = a.iterations;
  WEFT_TRY_ASSIGN(options.budget, parse_duration(a.budget));
  options.warm_ups = a.warm_ups >= 0                        ? static_cast<std::uint64_t>(a.warm_ups)
                     : options.subject == Subject::workload ? 2
                                                            : 5;
  options.is_checked = a.check == 1;
  options.root = a.root;
  options.memory = a.memory == "allocated" ? Memory::allocated : Memory::plain;
  options.placements = a.placement == "both"  ? Placements::both
                       : a.placement == "out" ? Placements::out_of_place
                                              : Placements::in_place;
  options.wants_pairs = a.wants_pairs;
  options.steps = a.steps;
  options.scale = a.scale;
  options.threshold_busbw = a.threshold_busbw;
  return options;
}

int refuse(const Error& error) {
  // Every rank of a job finds the same mistake; the first one says it.
  const char* const rank = std::getenv("WEFT_RANK");
  if (rank == nullptr || std::string_view{rank} == "0") {
    fmt::print(stderr, "weft bench: {}\n", error.message());
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return kExitUsage;
}

int launch(const Arguments& a, std::vector<std::string> words) {
  char self[PATH_MAX] = {};
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
    return refuse(Error{ErrorCode::system, "reading /proc/self/exe"});
  words.front() = self;
  JobOptions job;
  job.ranks = a.ranks;
  job.hosts = a.hosts;
  job.tags = Tags::off;
  // The bench computes in one thread a rank, so a core of its own costs it nothing and makes runs alike.
  if (a.ranks <= CoreSet::of_this_thread().num_cores()) job.binding = Binding::core;
  job.command = std::move(words);
  return run_job(job);
}

int bench(const Arguments& a, std::vector<std::string> words) {
  const auto options = options_from(a);
  if (!options) return refuse(options.error());
  // The ranks that -N starts are given the same arguments.
  const bool is_in_job = std::getenv("WEFT_RANK") != nullptr;
  if (a.ranks > 0 && !is_in_job) {
    if (const Status sensible = check(*options, a.ranks); !sensible) return refuse(sensible.error());
    return launch(a, std::move(words));
  }
  if (a.hosts != 1 && a.ranks == 0) return refuse(Error{ErrorCode::invalid_argument, "--hosts is for -N"});
  if (!a.transport.empty()) setenv("WEFT_TRANSPORTS", a.transport.c_str(), 1);
  BenchOutputs outputs = a.outputs;
  outputs.title = "weft bench " + a.what;
  outputs.command = "weft";
  for (std::size_t i = 1; i < words.size(); ++i) outputs.command += fmt::format(" {}", words[i]);
  return run_bench(*options, outputs);
}

}  // namespace

void add_bench(CLI::App& app, Chosen& chosen, int argc, char** argv) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* const command =
      app.add_subcommand("bench", "Measures collectives, point to point and workloads, and checks their results");
  add_options(*command, *arguments);
  command->footer(kFooter);
  command->callback([arguments, &chosen, words = std::vector<std::string>(argv, argv + argc)] {
    chosen = [arguments, words] { return bench(*arguments, words); };
  });
}

}  // namespace weft::tools
