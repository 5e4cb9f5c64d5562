#include "base/settings_report.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "base/text.h"

namespace weft {
namespace {

std::string_view name_of(SettingType type) noexcept {
  switch (type) {
    case SettingType::text: return "text";
    case SettingType::choice: return "choice";
    case SettingType::integer: return "integer";
    case SettingType::bytes: return "bytes";
    case SettingType::duration: return "duration";
    case SettingType::secret: return "secret";
  }
  return "unknown";
}

std::string or_dash(std::string_view text) { return text.empty() ? "-" : std::string(text); }

std::string shown_value(const Settings& settings, const SettingSpec& spec) {
  if (spec.type == SettingType::secret) return settings.is_set(spec.id) ? "(not shown)" : "-";
  return or_dash(settings.text(spec.id));
}

}  // namespace

std::string settings_table(const Settings& settings) {
  using Line = std::array<std::string, 6>;
  std::vector<Line> lines{{"name", "value", "origin", "default", "allowed", "meaning"}};
  for (const SettingSpec& spec : setting_specs()) {
    lines.push_back({std::string(spec.name), shown_value(settings, spec), settings.origin(spec.id),
                     or_dash(spec.default_value), std::string(spec.range), std::string(spec.meaning)});
  }
  std::array<std::size_t, 5> widths{};
  for (const Line& line : lines) {
    for (std::size_t column = 0; column < widths.size(); ++column) {
      widths[column] = std::max(widths[column], line[column].size());
    }
  }
  std::string text;
  for (const Line& line : lines) {
    for (std::size_t column = 0; column < widths.size(); ++column) {
      text += fmt::format("{:<{}}  ", line[column], widths[column]);
    }
    text += line.back() + "\n";
  }
  return text;
}

std::string settings_json(const Settings& settings) {
  std::string text = "[";
  std::string_view separator = "\n";
  for (const SettingSpec& spec : setting_specs()) {
    const bool hidden = spec.type == SettingType::secret;
    const std::string& value = settings.text(spec.id);
    text += fmt::format(
        "{}  {{\"name\": {}, \"type\": {}, \"is_set\": {}, \"value\": {}, \"origin\": {}, \"default\": {}, "
        "\"range\": {}, \"meaning\": {}}}",
        separator, json_string(spec.name), json_string(name_of(spec.type)), settings.is_set(spec.id),
        hidden || value.empty() ? "null" : json_string(value), json_string(settings.origin(spec.id)),
        spec.default_value.empty() ? "null" : json_string(spec.default_value), json_string(spec.range),
        json_string(spec.meaning));
    separator = ",\n";
  }
  return text + "\n]\n";
}

void apply_log_level(const Settings& settings) noexcept {
  const std::string& name = settings.text(Setting::log_level);
  constexpr std::array<std::string_view, 5> kNames{"debug", "info", "warning", "error", "off"};
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  log::set_level(static_cast<log::Level>(found - kNames.begin()));
}

}  // namespace weft
