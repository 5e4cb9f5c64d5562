#include <cstdio>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/settings.h"
#include "base/settings_report.h"
#include "bootstrap/secret_source.h"
#include "bootstrap/session.h"
#include "tools/commands.h"

namespace weft::tools {
namespace {

struct Arguments {
  std::uint32_t size = 0;
  std::string listen = "127.0.0.1:0";
  std::string secret_file;
};

Status serve(const Arguments& arguments) {
  WEFT_TRY_ASSIGN(const Settings settings, Settings::from_environment());
  apply_log_level(settings);
  bootstrap::Service::Options options;
  options.listen_address = arguments.listen;
  options.size = arguments.size;
  options.join_timeout = settings.duration(Setting::bootstrap_timeout);
  options.secret = Secret::random();
  if (!arguments.secret_file.empty()) {
    WEFT_TRY_ASSIGN(options.secret, bootstrap::read_secret_file(arguments.secret_file));
  }
  const std::string hex = options.secret.to_hex();
  WEFT_TRY_ASSIGN(const std::unique_ptr<bootstrap::Service> service, bootstrap::Service::start(std::move(options)));
  fmt::print("export WEFT_ADDRESS={}\nexport WEFT_SIZE={}\n", service->address(), arguments.size);
  if (arguments.secret_file.empty()) {
    fmt::print("export WEFT_SECRET={}\n", hex);
  } else {
    fmt::print("export WEFT_SECRET_FILE={}\n", arguments.secret_file);
  }
  std::fflush(stdout);
  return service->wait_until_done(Deadline::never());
}

}  // namespace

void add_bootstrap(CLI::App& app, Chosen& chosen) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* const command = app.add_subcommand("bootstrap", "Serves the meeting of a job's ranks");
  command->require_subcommand(1);
  CLI::App* const serving =
      command->add_subcommand("serve", "Prints the environment of the ranks and serves until they left");
  serving->add_option("--size", arguments->size, "How many ranks the job has")
      ->required()
      ->check(CLI::Range(1, 1'000'000));
  serving->add_option("--listen", arguments->listen, "Where (port 0: any)")->capture_default_str();
  serving->add_option("--secret-file", arguments->secret_file,
                      "A file with the job's secret; else one is made and printed");
  serving->footer(
      "The ranks also need WEFT_RANK, each its own.\n\nExamples:\n"
      "  weft bootstrap serve --size 4 > job.env &\n"
      "  weft bootstrap serve --size 64 --listen 10.0.0.1:4000 --secret-file /home/me/job.secret");
  serving->callback([arguments, &chosen] {
    chosen = [arguments] {
      const Status served = serve(*arguments);
      if (served) return kExitOk;
      fmt::print(stderr, "weft bootstrap: {}\n", served.error().message());
      return served.error().code() == ErrorCode::malformed ? kExitUsage : kExitFailed;
    };
  });
}

}  // namespace weft::tools
