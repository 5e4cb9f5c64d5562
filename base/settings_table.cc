#include "base/settings_table.h"

#include <array>
#include <cstddef>

#include "base/check.h"

namespace weft {
namespace {

constexpr std::uint64_t kMilli = 1'000'000;
constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kHour = 3600 * kSecond;
constexpr std::uint64_t kMega = 1024 * 1024;
constexpr std::uint64_t kGiga = 1024 * kMega;

using enum SettingType;

struct Row {
  SettingSpec spec;
  SettingRule rule;
};

// Limits of numbers are far beyond what a job uses; they are there so that a slip of the finger is found at the start.
constexpr std::array<Row, kSettings> kRows{{
    {{Setting::log_level, "WEFT_LOG_LEVEL", choice, "warning", "debug|info|warning|error|off",
      "Messages below this level are not written to standard error."},
     {}},
    {{Setting::rank, "WEFT_RANK", integer, "", "0 to 999999", "Position of this process in its job."},
     {.min = 0, .max = 999'999}},
    {{Setting::size, "WEFT_SIZE", integer, "", "1 to 1000000", "Number of ranks of the job."},
     {.min = 1, .max = 1'000'000}},
    {{Setting::local_rank, "WEFT_LOCAL_RANK", integer, "", "0 to 65535",
      "Position of this process among those of its job on this host."},
     {.min = 0, .max = 65'535}},
    {{Setting::local_size, "WEFT_LOCAL_SIZE", integer, "", "1 to 65536", "Number of ranks of the job on this host."},
     {.min = 1, .max = 65'536}},
    {{Setting::address, "WEFT_ADDRESS", text, "", "host:port, up to 300 characters",
      "Where the ranks of the job meet: the bootstrap service, which rank 0 serves."},
     {.max = 300}},
    {{Setting::secret, "WEFT_SECRET", SettingType::secret, "", "64 hex digits",
      "The secret that every rank of the job shares and proves."},
     {}},
    {{Setting::secret_file, "WEFT_SECRET_FILE", text, "", "a path, up to 4096 characters",
      "A file that holds the job's secret."},
     {.max = 4096}},
    {{Setting::job, "WEFT_JOB", text, "", "up to 64 characters", "Name of the job, for messages."}, {.max = 64}},
    {{Setting::interface, "WEFT_INTERFACE", text, "", "names, comma-separated, up to 4096 characters",
      "Network interfaces to use, by prefix; ^ in front excludes them, = in front wants the exact names."},
     {.max = 4096}},
    {{Setting::host_id, "WEFT_HOST_ID", text, "", "up to 255 characters",
      "Identity of this host in place of the one that Weft finds, for hosts that are emulated on one machine."},
     {.max = 255}},
    {{Setting::bootstrap_timeout, "WEFT_BOOTSTRAP_TIMEOUT", duration, "120s", "1ms to 24h",
      "How long the ranks of a job may take to meet."},
     {.min = kMilli, .max = 24 * kHour}},
    {{Setting::connect_timeout, "WEFT_CONNECT_TIMEOUT", duration, "60s", "1ms to 24h",
      "How long links between ranks may take to connect."},
     {.min = kMilli, .max = 24 * kHour}},
    {{Setting::timeout, "WEFT_TIMEOUT", duration, "600s", "1ms to 720h, or inf",
      "How long one operation may last before it fails and names the ranks that were waited for."},
     {.min = kMilli, .max = 720 * kHour, .may_be_infinite = true}},
    {{Setting::spin, "WEFT_SPIN", duration, "1ms", "0 to 10s, or inf",
      "How long a waiting rank polls before it sleeps."},
     {.min = 0, .max = 10 * kSecond, .may_be_infinite = true}},
    {{Setting::transports, "WEFT_TRANSPORTS", text, "shm,tcp", "names, comma-separated, up to 256 characters",
      "Transports that may be used, the preferred one first."},
     {.max = 256}},
    {{Setting::tcp_streams, "WEFT_TCP_STREAMS", integer, "0", "0 to 16",
      "TCP connections per pair of ranks; 0 chooses by the link."},
     {.min = 0, .max = 16}},
    {{Setting::tcp_buffer, "WEFT_TCP_BUFFER", SettingType::bytes, "0", "0 to 1G",
      "Size of a TCP socket's buffers; 0 leaves it to the kernel."},
     {.min = 0, .max = kGiga}},
    {{Setting::eager_limit, "WEFT_EAGER_LIMIT", SettingType::bytes, "0", "0 to 16M",
      "Largest payload that is sent without asking the receiver first; 0 is the transport's choice."},
     {.min = 0, .max = 16 * kMega}},
    {{Setting::slice_size, "WEFT_SLICE_SIZE", SettingType::bytes, "0", "0 to 1G",
      "Largest piece of a chunk that moves as one; 0 is the transport's choice."},
     {.min = 0, .max = kGiga}},
    {{Setting::slices_in_flight, "WEFT_SLICES_IN_FLIGHT", integer, "0", "0 to 64",
      "Slices of one lane that are under way at the same time; 0 chooses by the transport."},
     {.min = 0, .max = 64}},
    {{Setting::algorithm, "WEFT_ALGORITHM", text, "auto", "auto, a name, or collective=name,..., up to 1024 characters",
      "Algorithm of the collectives."},
     {.max = 1024}},
    {{Setting::shm_copy, "WEFT_SHM_COPY", choice, "auto", "auto|staging|readv",
      "How ordinary buffers cross between processes of one host."},
     {}},
    {{Setting::trace_file, "WEFT_TRACE_FILE", text, "", "a path, up to 4096 characters",
      "Writes a Chrome/Perfetto trace there; %r in it is the rank."},
     {.max = 4096}},
}};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kSettings; ++i) {
    if (static_cast<std::size_t>(kRows[i].spec.id) != i) return false;
  }
  return true;
}
static_assert(is_in_order(), "row i of the table is setting i");

constexpr std::array<SettingSpec, kSettings> specs_of_rows() {
  std::array<SettingSpec, kSettings> specs{};
  for (std::size_t i = 0; i < kSettings; ++i) specs[i] = kRows[i].spec;
  return specs;
}

std::size_t index_of(Setting id) noexcept {
  const auto index = static_cast<std::size_t>(id);
  WEFT_CHECK(index < kSettings, "a Setting is one of its enumerators");
  return index;
}

}  // namespace

std::span<const SettingSpec> setting_specs() noexcept {
  static constexpr std::array<SettingSpec, kSettings> kSpecs = specs_of_rows();
  return kSpecs;
}
const SettingSpec& spec_of(Setting id) noexcept { return kRows[index_of(id)].spec; }
const SettingRule& rule_of(Setting id) noexcept { return kRows[index_of(id)].rule; }

}  // namespace weft
