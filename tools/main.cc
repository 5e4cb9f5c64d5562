// The `weft` command: reads the command line and hands over to one subcommand.
#include <cstdio>

#include <CLI/CLI.hpp>

#include "tools/commands.h"
#include "tools/machine/version.h"

int main(int argc, char** argv) {
  using namespace weft::tools;
  CLI::App app{"Weft: collectives and zero-copy transport between the processes of a job.", "weft"};
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  app.footer(
      "Try:  weft bench all_reduce -N 2        measure two ranks on this machine\n"
      "      weft run -n 4 -- ./program        start four ranks of a program\n"
      "      weft COMMAND --help               what a command does, with examples");
  Chosen chosen;
  add_run(app, chosen);
  add_bench(app, chosen, argc, argv);
  add_plan(app, chosen);
  add_settings(app, chosen);
  add_info(app, chosen);
  add_bootstrap(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    return kExitUsage;
  }
  return chosen();
}
