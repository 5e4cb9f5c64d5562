#include "base/settings.h"

#include <cstdlib>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "base/settings_table.h"
#include "base/units.h"

namespace weft {
namespace {

using namespace std::chrono_literals;

Result<Settings> read(const std::map<std::string, std::string>& variables) {
  return Settings::from([&variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

std::string refusal(const std::string& name, const std::string& value) {
  const auto settings = read({{name, value}});
  if (settings) return "accepted";
  EXPECT_EQ(settings.error().code(), ErrorCode::malformed);
  return settings.error().message();
}

TEST(Settings, EveryDefaultFollowsItsOwnRule) {
  const auto settings = read({});
  ASSERT_TRUE(settings) << settings.error().message();
  for (const SettingSpec& spec : setting_specs()) {
    EXPECT_FALSE(settings->is_set(spec.id)) << spec.name;
    EXPECT_EQ(settings->text(spec.id), spec.default_value);
    EXPECT_EQ(settings->origin(spec.id), "default");
    EXPECT_TRUE(spec.name.starts_with("WEFT_")) << spec.name;
    EXPECT_FALSE(spec.meaning.empty()) << spec.name;
    EXPECT_TRUE(spec.meaning.ends_with(".")) << spec.name;
    EXPECT_FALSE(spec.range.empty()) << spec.name;
  }
  EXPECT_EQ(settings->text(Setting::log_level), "warning");
  EXPECT_EQ(settings->duration(Setting::bootstrap_timeout), 120s);
  EXPECT_EQ(settings->duration(Setting::connect_timeout), 60s);
  EXPECT_EQ(settings->duration(Setting::timeout), 600s);
  EXPECT_EQ(settings->duration(Setting::spin), 1ms);
  EXPECT_EQ(settings->text(Setting::transports), "shm,tcp");
  EXPECT_EQ(settings->integer(Setting::tcp_streams), 0);
  EXPECT_EQ(settings->bytes(Setting::eager_limit), 0U);
}

// The range that people read is the range that is checked: both ends are accepted, what lies beyond is not.
TEST(Settings, TheRangeThatIsPrintedIsTheRangeThatIsChecked) {
  int num_checked = 0;
  for (const SettingSpec& spec : setting_specs()) {
    if (spec.type != SettingType::integer && spec.type != SettingType::bytes && spec.type != SettingType::duration) {
      continue;
    }
    const auto split = spec.range.find(" to ");
    ASSERT_NE(split, std::string_view::npos) << spec.name;
    const std::string low(spec.range.substr(0, split));
    std::string high(spec.range.substr(split + 4));
    const bool may_be_infinite = high.ends_with(", or inf");
    if (may_be_infinite) high.resize(high.size() - 8);
    const std::string name(spec.name);
    EXPECT_TRUE(read({{name, low}})) << name << "=" << low;
    EXPECT_TRUE(read({{name, high}})) << name << "=" << high;
    const SettingRule& rule = rule_of(spec.id);
    const std::string unit = spec.type == SettingType::duration ? "ns" : "";
    EXPECT_NE(refusal(name, std::to_string(rule.max + 1) + unit).find("out of range"), std::string::npos) << name;
    EXPECT_TRUE(read({{name, std::to_string(rule.max) + unit}})) << name;
    if (rule.min > 0) {
      EXPECT_NE(refusal(name, std::to_string(rule.min - 1) + unit).find("out of range"), std::string::npos) << name;
    }
    if (spec.type == SettingType::duration) {
      EXPECT_EQ(read({{name, "inf"}}).has_value(), may_be_infinite) << name;
      EXPECT_EQ(parse_duration(high).value().count(), static_cast<std::int64_t>(rule.max)) << name;
    } else {
      EXPECT_EQ(parse_bytes(high).value(), rule.max) << name;
    }
    ++num_checked;
  }
  EXPECT_GE(num_checked, 13);
}

TEST(Settings, ReadsEachType) {
  const auto settings = read({{"WEFT_RANK", "3"},
                              {"WEFT_TCP_BUFFER", "4M"},
                              {"WEFT_TIMEOUT", "inf"},
                              {"WEFT_LOG_LEVEL", "Info"},
                              {"WEFT_SHM_COPY", "readv"},
                              {"WEFT_JOB", "night run"},
                              {"WEFT_SECRET", std::string(64, 'a')}});
  ASSERT_TRUE(settings) << settings.error().message();
  EXPECT_EQ(settings->integer(Setting::rank), 3);
  EXPECT_EQ(settings->bytes(Setting::tcp_buffer), 4U << 20);
  EXPECT_EQ(settings->duration(Setting::timeout), Nanos::max());
  EXPECT_EQ(settings->text(Setting::log_level), "info") << "the case of a choice does not matter";
  EXPECT_EQ(settings->text(Setting::shm_copy), "readv");
  EXPECT_EQ(settings->text(Setting::job), "night run");
  EXPECT_TRUE(settings->is_set(Setting::secret));
  EXPECT_EQ(settings->origin(Setting::rank), "environment");
  EXPECT_EQ(settings->origin(Setting::size), "default");
}

TEST(Settings, BlanksAreIgnoredAndEmptyIsUnset) {
  const auto settings = read({{"WEFT_RANK", " 3\n"}, {"WEFT_SIZE", ""}, {"WEFT_SPIN", "  "}});
  ASSERT_TRUE(settings) << settings.error().message();
  EXPECT_EQ(settings->integer(Setting::rank), 3);
  EXPECT_EQ(settings->text(Setting::rank), "3");
  EXPECT_FALSE(settings->is_set(Setting::size));
  EXPECT_FALSE(settings->is_set(Setting::spin));
  EXPECT_EQ(settings->duration(Setting::spin), 1ms);
}

TEST(Settings, RefusalsNameTheVariableTheValueAndWhatIsAllowed) {
  EXPECT_EQ(refusal("WEFT_LOG_LEVEL", "loud"),
            "malformed: WEFT_LOG_LEVEL is \"loud\": no such choice. Allowed: debug|info|warning|error|off");
  EXPECT_EQ(refusal("WEFT_RANK", "-1"), "malformed: WEFT_RANK is \"-1\": not a whole number. Allowed: 0 to 999999");
  EXPECT_EQ(refusal("WEFT_TCP_STREAMS", "17"), "malformed: WEFT_TCP_STREAMS is \"17\": out of range. Allowed: 0 to 16");
  EXPECT_EQ(refusal("WEFT_RANK", "99999999999999999999"),
            "malformed: WEFT_RANK is \"99999999999999999999\": out of range. Allowed: 0 to 999999");
  EXPECT_EQ(refusal("WEFT_SPIN", "fast"),
            "malformed: WEFT_SPIN is \"fast\": not a duration. Allowed: 0 to 10s, or inf");
  EXPECT_EQ(refusal("WEFT_SLICE_SIZE", "1.5M"), "malformed: WEFT_SLICE_SIZE is \"1.5M\": not a size. Allowed: 0 to 1G");
  EXPECT_EQ(refusal("WEFT_SHM_COPY", "auto|staging"),
            "malformed: WEFT_SHM_COPY is \"auto|staging\": no such choice. Allowed: auto|staging|readv");
  EXPECT_EQ(refusal("WEFT_RANK", "1 2"), "malformed: WEFT_RANK is \"1 2\": not a whole number. Allowed: 0 to 999999");
}

TEST(Settings, ASecretIsNeverRepeated) {
  const std::string nearly = std::string(63, 'b') + "x";
  EXPECT_EQ(refusal("WEFT_SECRET", nearly).find("bbb"), std::string::npos);
  EXPECT_EQ(refusal("WEFT_SECRET", nearly),
            "malformed: WEFT_SECRET is a value that is not shown: not 64 hex digits. Allowed: 64 hex digits");
  EXPECT_NE(refusal("WEFT_SECRET", std::string(63, 'b')), "accepted");
}

// CASES S06: every variable with hostile values. A text may be accepted; nothing else is, and every refusal is one
// short line.
TEST(Settings, HostileValuesAreRefusedInOneShortLine) {
  const std::vector<std::string> hostile{std::string(65, 'x'),
                                         std::string(4096, 'x'),
                                         std::string(131000, '9'),
                                         "%n%s%n%s",
                                         "a\nb",
                                         "\xff\xfe\x80",
                                         "1\x1b[2J",
                                         std::string("0\0001", 3),
                                         "{}{0}",
                                         std::string(131000, '\n') + "x\ny"};
  for (const SettingSpec& spec : setting_specs()) {
    for (const std::string& value : hostile) {
      const auto settings = read({{std::string(spec.name), value}});
      if (settings) {
        ASSERT_EQ(spec.type, SettingType::text) << spec.name;
        ASSERT_LE(settings->text(spec.id).size(), 4096U) << spec.name;
        ASSERT_EQ(settings->text(spec.id).find('\n'), std::string::npos) << spec.name;
        continue;
      }
      const std::string message = settings.error().message();
      ASSERT_LT(message.size(), 500U) << spec.name;
      ASSERT_EQ(message.find_first_of(std::string("\n\x1b\xff\0", 4)), std::string::npos) << spec.name;
      ASSERT_NE(message.find(spec.name), std::string::npos);
    }
  }
}

TEST(Settings, WithChangesACopyAndItsOrigin) {
  const auto settings = read({{"WEFT_SPIN", "5us"}});
  const auto changed = settings->with(Setting::spin, "1ms", "--spin");
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->duration(Setting::spin), 1ms);
  EXPECT_EQ(changed->origin(Setting::spin), "--spin");
  EXPECT_EQ(settings->duration(Setting::spin), 5us);
  EXPECT_EQ(settings->origin(Setting::spin), "environment");

  const auto unset = changed->with(Setting::spin, "", "--spin");
  EXPECT_EQ(unset->duration(Setting::spin), 1ms);
  EXPECT_EQ(unset->origin(Setting::spin), "default");

  const auto refused = settings->with(Setting::spin, "fast", "--spin");
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().doing().starts_with("--spin: WEFT_SPIN is \"fast\"")) << refused.error().doing();
}

TEST(SettingsDeathTest, ReadingAnotherTypeIsABug) {
  const auto settings = read({});
  EXPECT_DEATH((void)settings->integer(Setting::spin), "a setting is read as the type it has");
  EXPECT_DEATH((void)Settings{}.text(Setting::spin), "Settings come from");
}

// CASES U02.
TEST(Settings, UnknownVariablesComeWithTheNearestName) {
  const std::vector<std::string> names{"WEFT_LOG_LEVL", "WEFT_LOG_LEVEL", "PATH",       "WEFT_TCP_STREAM", "WEFT_",
                                       "WEFT_SPNI",     "weft_spin",      "WEFT_QZXJV", "WEFT_a\nb"};
  const std::vector<std::string> unknown = Settings::unknown_variables(names);
  const std::vector<std::string> expected{"WEFT_LOG_LEVL, did you mean WEFT_LOG_LEVEL?",
                                          "WEFT_TCP_STREAM, did you mean WEFT_TCP_STREAMS?",
                                          "WEFT_",
                                          "WEFT_SPNI, did you mean WEFT_SPIN?",
                                          "WEFT_QZXJV",
                                          "\"WEFT_a\\x0ab\""};
  EXPECT_EQ(unknown, expected);
}

TEST(Settings, NoRightNameIsEverUnknown) {
  std::vector<std::string> names;
  for (const SettingSpec& spec : setting_specs()) names.emplace_back(spec.name);
  EXPECT_TRUE(Settings::unknown_variables(names).empty());
}

TEST(Settings, VeryLongUnknownNamesAreShortened) {
  const std::vector<std::string> names{"WEFT_" + std::string(131000, 'X')};
  const auto unknown = Settings::unknown_variables(names);
  ASSERT_EQ(unknown.size(), 1U);
  EXPECT_LT(unknown[0].size(), 120U);
}

TEST(Settings, ReadsTheProcessEnvironment) {
  ASSERT_EQ(::setenv("WEFT_JOB", "from the environment", 1), 0);
  ASSERT_EQ(::setenv("WEFT_JOBB", "slip", 1), 0);
  const auto settings = Settings::from_environment();
  const auto unknown = Settings::unknown_in_environment();
  ::unsetenv("WEFT_JOB");
  ::unsetenv("WEFT_JOBB");
  ASSERT_TRUE(settings) << settings.error().message();
  EXPECT_EQ(settings->text(Setting::job), "from the environment");
  EXPECT_EQ(std::count(unknown.begin(), unknown.end(), "WEFT_JOBB, did you mean WEFT_JOB?"), 1);
}

}  // namespace
}  // namespace weft
