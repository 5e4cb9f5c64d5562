#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/units.h"
#include "tools/commands.h"
#include "tools/run/job.h"

namespace weft::tools {

void add_run(CLI::App& app, Chosen& chosen) {
  struct Arguments {
    JobOptions job;
    std::string binding = "none";
    std::string timeout = "inf";
    bool wants_tags = true;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* const command =
      app.add_subcommand("run", "Starts the ranks of a job on this machine and watches over them");
  command->add_option("-n,--ranks", arguments->job.ranks, "How many processes")->capture_default_str();
  command
      ->add_option("--hosts", arguments->job.hosts,
                   "Treat the ranks as if they were on so many hosts (below scripts/test_hosts.sh: on those)")
      ->capture_default_str();
  command->add_option("--bind", arguments->binding, "none, or core: a core of its own for each rank")
      ->check(CLI::IsMember({"none", "core"}))
      ->capture_default_str();
  command->add_option("--timeout", arguments->timeout, "End the job after that long (30s, 5m); exit code 124")
      ->capture_default_str();
  command->add_flag("--tag,!--no-tag", arguments->wants_tags, "Put [rank] in front of every line (default)");
  command->add_option("--output-dir", arguments->job.output_dir,
                      "Also write what rank R says to DIR/rank_R.out and .err");
  command->add_option("command", arguments->job.command, "Program and its arguments, after --")->required();
  command->positionals_at_end();
  command->footer(
      "Every rank gets WEFT_RANK, WEFT_SIZE, WEFT_LOCAL_RANK, WEFT_LOCAL_SIZE, WEFT_ADDRESS, WEFT_SECRET, and RANK,\n"
      "WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE for frameworks. Rank 0 reads standard input, the others nothing.\n"
      "The first rank that fails ends the job: SIGTERM to all, SIGKILL 3 s later. Exit code: that rank's, 128 + N if\n"
      "signal N killed it or this command; 124 for --timeout, 126 or 127 if the command cannot be run.\n"
      "Nothing stays behind, even if this command itself is killed.\n\n"
      "Examples:\n"
      "  weft run -n 4 -- ./program --its-option\n"
      "  weft run -n 4 --hosts 2 -- weft bench all_reduce\n"
      "  weft run -n 2 --bind core --timeout 60s -- python3 train.py");
  command->callback([arguments, &chosen] {
    chosen = [arguments]() -> int {
      const auto timeout = parse_duration(arguments->timeout);
      if (!timeout) {
        fmt::print(stderr, "weft run: --timeout: {}\n", timeout.error().message());
        return kExitUsage;
      }
      arguments->job.timeout = *timeout;
      arguments->job.binding = arguments->binding == "core" ? Binding::core : Binding::none;
      arguments->job.tags = arguments->wants_tags ? Tags::on : Tags::off;
      return run_job(arguments->job);
    };
  });
}

}  // namespace weft::tools
