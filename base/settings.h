#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace weft {

/// Every WEFT_* setting. The table of their types, ranges, defaults and meanings is in settings_table.cc;
/// `weft settings` prints it. A new setting is one enumerator here and one row there.
enum class Setting : std::uint8_t {
  log_level,          ///< WEFT_LOG_LEVEL: debug, info, warning, error, off
  rank,               ///< WEFT_RANK
  size,               ///< WEFT_SIZE
  local_rank,         ///< WEFT_LOCAL_RANK
  local_size,         ///< WEFT_LOCAL_SIZE
  address,            ///< WEFT_ADDRESS: host:port of the bootstrap service
  secret,             ///< WEFT_SECRET: the job's secret, 64 hex digits (never printed)
  secret_file,        ///< WEFT_SECRET_FILE: a file that holds the secret
  job,                ///< WEFT_JOB: the job's name
  interface,          ///< WEFT_INTERFACE: names of network interfaces, comma-separated, ^ negates, = is exact
  host_id,            ///< WEFT_HOST_ID: overrides what identifies this host (emulated hosts)
  bootstrap_timeout,  ///< WEFT_BOOTSTRAP_TIMEOUT
  connect_timeout,    ///< WEFT_CONNECT_TIMEOUT
  timeout,            ///< WEFT_TIMEOUT: of one operation
  spin,               ///< WEFT_SPIN: how long a waiting rank polls before it sleeps
  transports,         ///< WEFT_TRANSPORTS: allowed transports in order of preference, "shm,tcp"
  tcp_streams,        ///< WEFT_TCP_STREAMS: connections per pair of ranks
  tcp_buffer,         ///< WEFT_TCP_BUFFER: socket buffer size, 0 leaves it to the kernel
  eager_limit,        ///< WEFT_EAGER_LIMIT: largest payload sent without asking, 0 = the transport's choice
  slice_size,         ///< WEFT_SLICE_SIZE: largest piece of a chunk that moves as one, 0 = the transport's choice
  slices_in_flight,   ///< WEFT_SLICES_IN_FLIGHT
  algorithm,          ///< WEFT_ALGORITHM: "auto", a name, or "collective=name,..."
  shm_copy,           ///< WEFT_SHM_COPY: auto, staging, readv — how plain buffers cross between processes
  trace_file,         ///< WEFT_TRACE_FILE: writes a Chrome/Perfetto trace there, %r is the rank
};
inline constexpr std::size_t kSettings = static_cast<std::size_t>(Setting::trace_file) + 1;

enum class SettingType : std::uint8_t { text, choice, integer, bytes, duration, secret };

/// What is true of a setting on every machine.
struct SettingSpec {
  Setting id;
  std::string_view name;  ///< With the WEFT_ in front.
  SettingType type;
  std::string_view default_value;  ///< As it would be written; empty = unset.
  std::string_view range;          ///< For people: "0 to 1G", "a|b|c".
  std::string_view meaning;        ///< One sentence.
};

/// All specs in the order of `Setting`. Thread: any.
std::span<const SettingSpec> setting_specs() noexcept;

/// A snapshot of all settings, read once and validated; values never change afterwards.
/// Surrounding blanks of a value are ignored; an empty value counts as unset.
/// Thread: any (immutable).
class Settings {
 public:
  /// Looks a variable up by name; nullopt when unset.
  using Lookup = std::function<std::optional<std::string>(const std::string& name)>;

  /// Reads every setting from the process environment.
  /// Errors: malformed — the first setting whose value does not follow its type or range; the message names the
  /// variable, the value (shortened to 64 characters), and what is allowed.
  static Result<Settings> from_environment();
  /// The same from any source, for tests.
  static Result<Settings> from(const Lookup& lookup);

  /// A copy in which `id` has another value, its origin being `origin` (for example "--spin").
  [[nodiscard]] Result<Settings> with(Setting id, std::string_view value, std::string_view origin) const;

  [[nodiscard]] bool is_set(Setting id) const noexcept;
  /// The value as text, trimmed; the default when unset.
  [[nodiscard]] const std::string& text(Setting id) const noexcept;
  /// Of a setting of type integer; the type is a promise of the caller (WEFT_CHECK). The same for the next two.
  [[nodiscard]] std::int64_t integer(Setting id) const noexcept;
  [[nodiscard]] std::uint64_t bytes(Setting id) const noexcept;
  [[nodiscard]] Nanos duration(Setting id) const noexcept;
  /// "default", "environment", or what `with` was told.
  [[nodiscard]] const std::string& origin(Setting id) const noexcept;

  /// WEFT_* variables that no setting has, each with the nearest name ("WEFT_LOG_LEVL, did you mean WEFT_LOG_LEVEL?").
  static std::vector<std::string> unknown_variables(std::span<const std::string> names);
  /// The same for the variables of this process. Thread: any, while nobody changes the environment.
  static std::vector<std::string> unknown_in_environment();

 private:
  struct Value {
    std::string text;
    std::string origin;
    std::uint64_t number = 0;  ///< Parsed form of integer, bytes and duration (ns) settings.
    bool is_set = false;
  };
  std::vector<Value> values_;
  friend struct SettingsReader;
};

}  // namespace weft
