#pragma once

#include <cstdint>

#include "base/settings.h"

namespace weft {

/// Largest number that any setting may have: "inf" for a duration, no practical limit for the others.
inline constexpr std::uint64_t kSettingInfinite = static_cast<std::uint64_t>(Nanos::max().count());

/// What the reader of settings checks; SettingSpec::range says the same to people.
struct SettingRule {
  std::uint64_t min = 0;         ///< Of a number (bytes; nanoseconds).
  std::uint64_t max = 0;         ///< Of a number; of a text, its length in bytes.
  bool may_be_infinite = false;  ///< Whether a duration may be "inf" beyond `max`.
};

const SettingSpec& spec_of(Setting id) noexcept;
const SettingRule& rule_of(Setting id) noexcept;

}  // namespace weft
