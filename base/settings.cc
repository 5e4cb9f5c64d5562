#include "base/settings.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

#include "base/check.h"
#include "base/settings_table.h"
#include "base/text.h"
#include "base/units.h"

namespace weft {
namespace {

constexpr std::string_view kPrefix = "WEFT_";

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return result;
}

/// The names of a range such as "a|b|c".
bool is_choice_of(std::string_view range, std::string_view value) {
  while (true) {
    const auto bar = range.find('|');
    if (range.substr(0, bar) == value) return true;
    if (bar == std::string_view::npos) return false;
    range.remove_prefix(bar + 1);
  }
}

bool is_hex64(std::string_view text) noexcept {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

bool has_control(std::string_view text) noexcept {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
}

Error refused(const SettingSpec& spec, std::string_view value, std::string_view why) {
  const std::string shown = spec.type == SettingType::secret ? "a value that is not shown" : in_quotes(value);
  return Error{ErrorCode::malformed, fmt::format("{} is {}: {}", spec.name, shown, why),
               fmt::format("Allowed: {}", spec.range)};
}

}  // namespace

/// Turns text into values: the only writer of Settings.
struct SettingsReader {
  static Status store(Settings& settings, Setting id, std::string_view given, std::string_view origin) {
    const SettingSpec& spec = spec_of(id);
    Settings::Value& slot = settings.values_[static_cast<std::size_t>(id)];
    const std::string_view value = trimmed(given);
    slot = Settings::Value{};
    slot.is_set = !value.empty();
    slot.origin = slot.is_set ? origin : "default";
    return parse(spec, rule_of(id), slot.is_set ? value : spec.default_value, slot);
  }

  static const Settings::Value& value_of(const Settings& settings, Setting id) noexcept {
    WEFT_CHECK(settings.values_.size() == kSettings, "Settings come from from() or from_environment()");
    return settings.values_[static_cast<std::size_t>(spec_of(id).id)];
  }

  static const Settings::Value& number_of(const Settings& settings, Setting id, SettingType type) noexcept {
    WEFT_CHECK(spec_of(id).type == type, "a setting is read as the type it has");
    return value_of(settings, id);
  }

  static Settings with_room() {
    Settings settings;
    settings.values_.resize(kSettings);
    return settings;
  }

 private:
  static Status parse(const SettingSpec& spec, const SettingRule& rule, std::string_view value, Settings::Value& slot) {
    slot.text = value;
    if (value.empty()) return {};
    switch (spec.type) {
      case SettingType::text: return check_text(spec, rule, value);
      case SettingType::secret: return is_hex64(value) ? Status{} : refused(spec, value, "not 64 hex digits");
      case SettingType::choice:
        slot.text = lower(value);
        return is_choice_of(spec.range, slot.text) ? Status{} : refused(spec, value, "no such choice");
      case SettingType::integer: {
        const auto parsed = std::from_chars(value.data(), value.data() + value.size(), slot.number);
        if (parsed.ptr != value.data() + value.size()) return refused(spec, value, "not a whole number");
        if (parsed.ec != std::errc{}) return refused(spec, value, "out of range");
        return check_number(spec, rule, value, slot.number);
      }
      case SettingType::bytes: {
        const Result<std::uint64_t> size_bytes = parse_bytes(value);
        if (!size_bytes) return refused(spec, value, "not a size");
        slot.number = *size_bytes;
        return check_number(spec, rule, value, slot.number);
      }
      case SettingType::duration: {
        const Result<Nanos> duration = parse_duration(value);
        if (!duration) return refused(spec, value, "not a duration");
        slot.number = static_cast<std::uint64_t>(duration->count());
        if (*duration == Nanos::max() && rule.may_be_infinite) return {};
        return check_number(spec, rule, value, slot.number);
      }
    }
    return refused(spec, value, "unknown type");
  }

  static Status check_number(const SettingSpec& spec, const SettingRule& rule, std::string_view value,
                             std::uint64_t number) {
    if (number < rule.min || number > rule.max) return refused(spec, value, "out of range");
    return {};
  }

  static Status check_text(const SettingSpec& spec, const SettingRule& rule, std::string_view value) {
    if (value.size() > rule.max) return refused(spec, value, "too long");
    if (has_control(value)) return refused(spec, value, "it has control characters");
    if (!is_utf8(value)) return refused(spec, value, "it is not UTF-8");
    return {};
  }
};

Result<Settings> Settings::from_environment() {
  return from([](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  });
}

Result<Settings> Settings::from(const Lookup& lookup) {
  Settings settings = SettingsReader::with_room();
  for (const SettingSpec& spec : setting_specs()) {
    const std::optional<std::string> found = lookup(std::string(spec.name));
    WEFT_TRY(SettingsReader::store(settings, spec.id, found.value_or(std::string{}), "environment"));
  }
  return settings;
}

Result<Settings> Settings::with(Setting id, std::string_view value, std::string_view origin) const {
  WEFT_CHECK(values_.size() == kSettings, "Settings come from from() or from_environment()");
  Settings changed = *this;
  Status stored = SettingsReader::store(changed, id, value, origin);
  if (!stored) return stored.error().within(origin);
  return changed;
}

bool Settings::is_set(Setting id) const noexcept { return SettingsReader::value_of(*this, id).is_set; }
const std::string& Settings::text(Setting id) const noexcept { return SettingsReader::value_of(*this, id).text; }
const std::string& Settings::origin(Setting id) const noexcept { return SettingsReader::value_of(*this, id).origin; }

std::int64_t Settings::integer(Setting id) const noexcept {
  return static_cast<std::int64_t>(SettingsReader::number_of(*this, id, SettingType::integer).number);
}
std::uint64_t Settings::bytes(Setting id) const noexcept {
  return SettingsReader::number_of(*this, id, SettingType::bytes).number;
}
Nanos Settings::duration(Setting id) const noexcept {
  return Nanos{static_cast<std::int64_t>(SettingsReader::number_of(*this, id, SettingType::duration).number)};
}

std::vector<std::string> Settings::unknown_variables(std::span<const std::string> names) {
  std::vector<std::string> unknown;
  for (const std::string& name : names) {
    if (!name.starts_with(kPrefix)) continue;
    const std::span<const SettingSpec> specs = setting_specs();
    if (std::any_of(specs.begin(), specs.end(), [&name](const SettingSpec& spec) { return spec.name == name; })) {
      continue;
    }
    // A name that differs in more than a third of its letters is another word, and one longer than any is no slip.
    std::string_view nearest;
    const std::size_t letters = name.size() - kPrefix.size();
    std::size_t best = std::max<std::size_t>(2, letters / 3) + 1;
    for (const SettingSpec& spec : specs) {
      if (letters == 0 || name.size() > 64) break;
      const std::size_t distance = edit_distance(name, spec.name);
      if (distance < best) {
        best = distance;
        nearest = spec.name;
      }
    }
    const std::string quotation = in_quotes(name);
    const std::string shown = quotation == "\"" + name + "\"" ? name : quotation;
    unknown.push_back(nearest.empty() ? shown : fmt::format("{}, did you mean {}?", shown, nearest));
  }
  return unknown;
}

std::vector<std::string> Settings::unknown_in_environment() {
  std::vector<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (text.starts_with(kPrefix)) names.emplace_back(text.substr(0, text.find('=')));
  }
  return unknown_variables(names);
}

}  // namespace weft
