#include "base/settings_report.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "base/log.h"

namespace weft {
namespace {

Settings read(const std::string& name, const std::string& value) {
  return Settings::from([&](const std::string& asked) -> std::optional<std::string> {
           return asked == name ? std::optional(value) : std::nullopt;
         })
      .value();
}

TEST(SettingsReport, TheTableIsAlignedAndHasALineForEverySetting) {
  const std::string table = settings_table(read("WEFT_SPIN", "5ms"));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), static_cast<std::ptrdiff_t>(setting_specs().size()) + 1);
  const std::size_t column = table.find("origin");
  for (std::size_t line = 0; line < table.size(); line = table.find('\n', line) + 1) {
    EXPECT_EQ(table[line + column - 1], ' ');
    EXPECT_NE(table[line + column], ' ');
  }
  const std::size_t row = table.find("\nWEFT_SPIN ") + 1;
  ASSERT_NE(row, std::string::npos + 1);
  const std::string spin = table.substr(row, table.find('\n', row) - row);
  EXPECT_NE(spin.find(" 5ms "), std::string::npos) << spin;
  EXPECT_NE(spin.find(" environment "), std::string::npos) << spin;
  EXPECT_NE(spin.find(" 1ms "), std::string::npos) << spin;
  EXPECT_NE(spin.find("How long a waiting rank polls"), std::string::npos) << spin;
}

TEST(SettingsReport, TheJsonQuotesValuesAndMarksUnsetOnes) {
  const std::string json = settings_json(read("WEFT_JOB", "a \"b\" \\c"));
  EXPECT_TRUE(
      json.starts_with("[\n  {\"name\": \"WEFT_LOG_LEVEL\", \"type\": \"choice\", \"is_set\": false, "
                       "\"value\": \"warning\", \"origin\": \"default\", \"default\": \"warning\""))
      << json.substr(0, 200);
  EXPECT_NE(json.find("\"is_set\": true, \"value\": \"a \\\"b\\\" \\\\c\", \"origin\": \"environment\""),
            std::string::npos);
  EXPECT_NE(json.find("{\"name\": \"WEFT_RANK\", \"type\": \"integer\", \"is_set\": false, \"value\": null, "
                      "\"origin\": \"default\", \"default\": null, \"range\": \"0 to 999999\""),
            std::string::npos);
  EXPECT_TRUE(json.ends_with("}\n]\n"));
}

TEST(SettingsReport, TheSecretIsInNeitherForm) {
  const std::string secret(64, 'd');
  const Settings settings = read("WEFT_SECRET", secret);
  EXPECT_EQ(settings_table(settings).find("dddd"), std::string::npos);
  EXPECT_NE(settings_table(settings).find("(not shown)"), std::string::npos);
  EXPECT_EQ(settings_json(settings).find("dddd"), std::string::npos);
  EXPECT_NE(settings_json(settings).find("\"type\": \"secret\", \"is_set\": true, \"value\": null"), std::string::npos);
}

TEST(SettingsReport, TheLogFollowsTheSetting) {
  const log::Level before = log::level();
  apply_log_level(read("WEFT_LOG_LEVEL", "debug"));
  EXPECT_EQ(log::level(), log::Level::debug);
  apply_log_level(read("WEFT_LOG_LEVEL", "OFF"));
  EXPECT_EQ(log::level(), log::Level::off);
  apply_log_level(read("", ""));
  EXPECT_EQ(log::level(), log::Level::warning);
  log::set_level(before);
}

}  // namespace
}  // namespace weft
