#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/settings.h"
#include "base/settings_report.h"
#include "tools/commands.h"

namespace weft::tools {

void add_settings(CLI::App& app, Chosen& chosen) {
  const auto wants_json = std::make_shared<bool>(false);
  CLI::App* const command =
      app.add_subcommand("settings", "Lists all settings (WEFT_*): values, origins, defaults, meanings");
  command->add_flag("--json", *wants_json, "For programs");
  command->footer(
      "A variable that is malformed, or that nothing reads, is an error or a warning.\n\nExamples:\n"
      "  weft settings\n  WEFT_SPIN=1ms weft settings --json");
  command->callback([wants_json, &chosen] {
    chosen = [wants_json] {
      const auto settings = Settings::from_environment();
      if (!settings) {
        fmt::print(stderr, "weft settings: {}\n", settings.error().message());
        return kExitUsage;
      }
      fmt::print("{}", *wants_json ? settings_json(*settings) : settings_table(*settings));
      for (const std::string& unknown : Settings::unknown_in_environment()) {
        fmt::print(stderr, "weft settings: unknown variable {}\n", unknown);
      }
      return kExitOk;
    };
  });
}

}  // namespace weft::tools
