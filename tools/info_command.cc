#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/text.h"
#include "tools/commands.h"
#include "tools/machine/machine.h"
#include "tools/machine/version.h"

namespace weft::tools {
namespace {

/// What this build has; which of them serve a pair is found out when it connects.
constexpr const char* kTransports = "shm, tcp";

void print_text() {
  fmt::print("{}\n\nmachine\n", version_text());
  for (const Fact& fact : machine_facts()) fmt::print("  {:<20} {}\n", fact.name, fact.value);
  fmt::print("  {:<20} {}\n\nsystem\n", "transports", kTransports);
  for (const Finding& finding : system_findings()) {
    fmt::print("  {:<20} {:<34} {}\n", finding.name, finding.value,
               finding.is_good ? "ok" : "LOW OR MISSING: " + finding.verdict);
  }
}

void print_json() {
  std::string text = fmt::format(
      "{{\n  \"schema\": \"weft-info-1\",\n  \"version\": {},\n  \"transports\": [\"shm\", \"tcp\"],\n  \"machine\": "
      "{{",
      json_string(version_text()));
  const char* separator = "";
  for (const Fact& fact : machine_facts()) {
    text += fmt::format("{}\n    {}: {}", separator, json_string(fact.name), json_string(fact.value));
    separator = ",";
  }
  text += "\n  },\n  \"system\": [";
  separator = "";
  for (const Finding& finding : system_findings()) {
    text += fmt::format("{}\n    {{\"name\": {}, \"value\": {}, \"good\": {}, \"note\": {}}}", separator,
                        json_string(finding.name), json_string(finding.value), finding.is_good,
                        json_string(finding.verdict));
    separator = ",";
  }
  fmt::print("{}\n  ]\n}}\n", text);
}

}  // namespace

void add_info(CLI::App& app, Chosen& chosen) {
  const auto wants_json = std::make_shared<bool>(false);
  CLI::App* const command = app.add_subcommand("info", "Says what this machine has and allows, by trying it");
  command->add_flag("--json", *wants_json, "For programs");
  command->footer("Examples:\n  weft info\n  weft info --json");
  command->callback([wants_json, &chosen] {
    chosen = [wants_json] {
      *wants_json ? print_json() : print_text();
      return kExitOk;
    };
  });
}

}  // namespace weft::tools
