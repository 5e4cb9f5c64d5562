#include "base/log.h"

#include <atomic>
#include <memory>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace weft::log {
namespace {

std::atomic<Level> current_level{Level::warning};

spdlog::logger& logger() {
  // Never destroyed: a log line may be written while static objects are torn down.
  static spdlog::logger& instance = *[] {
    auto* created = new spdlog::logger("weft", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    created->set_level(spdlog::level::trace);
    created->set_pattern("weft %L %v");
    created->flush_on(spdlog::level::trace);
    return created;
  }();
  return instance;
}

std::string& prefix() {
  static auto& text = *new std::string;
  return text;
}

spdlog::level::level_enum to_spdlog(Level level) noexcept {
  switch (level) {
    case Level::debug: return spdlog::level::debug;
    case Level::info: return spdlog::level::info;
    case Level::warning: return spdlog::level::warn;
    case Level::error: return spdlog::level::err;
    case Level::off: return spdlog::level::off;
  }
  return spdlog::level::off;
}

std::string escaped(std::string_view line) {
  std::string text;
  text.reserve(line.size());
  for (const char c : line) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20 || code == 0x7f) {
      text += fmt::format("\\x{:02x}", code);
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

void set_level(Level level) noexcept { current_level.store(level, std::memory_order_relaxed); }
Level level() noexcept { return current_level.load(std::memory_order_relaxed); }
void set_prefix(std::string text) { prefix() = std::move(text); }

void write(Level level, std::string_view line) {
  if (level < log::level()) return;
  const std::string text = escaped(line);
  if (prefix().empty()) {
    logger().log(to_spdlog(level), "{}", text);
  } else {
    logger().log(to_spdlog(level), "[{}] {}", prefix(), text);
  }
}

}  // namespace weft::log
