#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace weft::log {

enum class Level : int { debug, info, warning, error, off };

/// Lines below `level` are dropped. Default: warning, or WEFT_LOG_LEVEL. Thread: any.
void set_level(Level level) noexcept;
[[nodiscard]] Level level() noexcept;

/// Put in front of every line, for example "rank 3". Thread: blocking (call once at start).
void set_prefix(std::string prefix);

/// Writes one line to standard error; control characters inside it are escaped, so one event is one line.
/// Thread: any.
void write(Level level, std::string_view line);

template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (level() <= Level::debug) write(Level::debug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (level() <= Level::info) write(Level::info, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  if (level() <= Level::warning) write(Level::warning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  if (level() <= Level::error) write(Level::error, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace weft::log
