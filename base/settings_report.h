#pragma once

#include <string>

#include "base/settings.h"

namespace weft {

/// All settings as an aligned table for people: name, value, origin, default, what is allowed, meaning; one line each.
/// A secret is never part of it, only whether it is set. Thread: any.
std::string settings_table(const Settings& settings);

/// The same as a JSON array of objects {name, type, value, origin, default, range, meaning}; an unset value is null,
/// and so is a secret, whose object says is_set. Ends with a newline. Thread: any.
std::string settings_json(const Settings& settings);

/// Makes base/log follow WEFT_LOG_LEVEL. Thread: any.
void apply_log_level(const Settings& settings) noexcept;

}  // namespace weft
