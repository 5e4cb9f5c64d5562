#include "bootstrap/launchers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"

namespace weft::bootstrap {
namespace {

/// The variables of one launcher. A rank and a size make it present; the local ones may be missing.
struct Launcher {
  const char* source;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
  bool size_alone_says_nothing;  ///< The size is set where nothing was launched (a Slurm allocation's shell).
};

constexpr std::array<Launcher, 5> kLaunchers{{
    {"WEFT_*", "WEFT_RANK", "WEFT_SIZE", "WEFT_LOCAL_RANK", "WEFT_LOCAL_SIZE", false},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", false},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", false},
    {"PMI (MPICH)", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", false},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr, true},
}};

/// Launchers that Weft does not read, but whose traces show that a process is not alone.
struct Trace {
  const char* launcher;
  const char* rank;
  const char* size;
};
constexpr std::array<Trace, 6> kTraces{{
    {"PMIx", "PMIX_RANK", nullptr},
    {"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
    {"PALS", "PALS_RANKID", "PALS_SIZE"},
    {"jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
    {"MVAPICH2", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
    {"ALPS", "ALPS_APP_PE", nullptr},
}};

std::optional<std::uint32_t> to_number(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Result<std::optional<std::uint32_t>> find_number(const Settings::Lookup& environment, const char* name) {
  if (name == nullptr) return std::optional<std::uint32_t>{};
  const auto text = find_value(environment, name);
  if (!text) return std::optional<std::uint32_t>{};
  const auto number = to_number(*text);
  if (!number) return Error{ErrorCode::malformed, fmt::format("{}={} is not a whole number", name, in_quotes(*text))};
  return number;
}

Error present_in_part(const Launcher& launcher, const char* present, const char* missing) {
  return Error{
      ErrorCode::invalid_argument, fmt::format("{} is set, but {} is not ({})", present, missing, launcher.source),
      fmt::format("Set both, or neither for a job of one rank; WEFT_RANK and WEFT_SIZE come before all others")};
}

std::optional<std::uint32_t> slurm_local_size(const Settings::Lookup& environment) {
  const auto node = find_value(environment, "SLURM_NODEID");
  auto tasks = find_value(environment, "SLURM_STEP_TASKS_PER_NODE");
  if (!tasks) tasks = find_value(environment, "SLURM_TASKS_PER_NODE");
  if (!node || !tasks) return std::nullopt;
  const auto number = to_number(*node);
  return number ? parse_slurm_tasks_per_node(*tasks, *number) : std::nullopt;
}

Result<Place> read_place(const Settings::Lookup& environment, const Launcher& launcher, std::uint32_t rank,
                         std::uint32_t size) {
  if (rank >= size) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}={} is not below {}={}", launcher.rank, rank, launcher.size, size)};
  }
  Place place{rank, size, 0, 1, launcher.source};
  WEFT_TRY_ASSIGN(const auto local_rank, find_number(environment, launcher.local_rank));
  WEFT_TRY_ASSIGN(auto local_size, find_number(environment, launcher.local_size));
  if (launcher.source == kLaunchers.back().source) local_size = slurm_local_size(environment);
  place.local_rank = local_rank.value_or(0);
  // Without a word about it: at least the ranks up to this one are here.
  place.local_size = local_size.value_or(place.local_rank + 1);
  if (place.local_rank >= place.local_size || place.local_size > size) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("local rank {} of {} does not fit rank {} of {} ({})", place.local_rank, place.local_size,
                             rank, size, launcher.source)};
  }
  return place;
}

}  // namespace

std::optional<std::string> find_value(const Settings::Lookup& environment, const std::string& name) {
  const auto value = environment(name);
  if (!value || trimmed(*value).empty()) return std::nullopt;
  return std::string(trimmed(*value));
}

Result<std::optional<Place>> find_place(const Settings::Lookup& environment) {
  for (const Launcher& launcher : kLaunchers) {
    WEFT_TRY_ASSIGN(const auto rank, find_number(environment, launcher.rank));
    WEFT_TRY_ASSIGN(const auto size, find_number(environment, launcher.size));
    if (rank && size) {
      WEFT_TRY_ASSIGN(auto place, read_place(environment, launcher, *rank, *size));
      return std::optional(std::move(place));
    }
    if (rank) return present_in_part(launcher, launcher.rank, launcher.size);
    if (size && !launcher.size_alone_says_nothing) return present_in_part(launcher, launcher.size, launcher.rank);
  }
  return std::optional<Place>{};
}

std::optional<std::string> find_contradiction(const Settings::Lookup& environment) {
  const auto look = [&](const char* launcher, const char* rank_name,
                        const char* size_name) -> std::optional<std::string> {
    const auto rank = find_value(environment, rank_name);
    const auto size = size_name != nullptr ? find_value(environment, size_name) : std::nullopt;
    if (!rank || size == "1") return std::nullopt;
    if (size) return fmt::format("rank {} of {} by {}", *rank, *size, launcher);
    return fmt::format("rank {} by {}", *rank, launcher);
  };
  for (const Launcher& launcher : kLaunchers) {
    if (auto found = look(launcher.source, launcher.rank, launcher.size)) return found;
  }
  // A launcher that Weft reads also leaves traces of others (Open MPI those of PMIx); its own word counts.
  const bool is_known = std::ranges::any_of(
      kLaunchers, [&](const Launcher& launcher) { return find_value(environment, launcher.rank).has_value(); });
  if (is_known) return std::nullopt;
  for (const Trace& trace : kTraces) {
    if (auto found = look(trace.launcher, trace.rank, trace.size)) return found;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> parse_slurm_tasks_per_node(const std::string& text, std::uint32_t node) {
  std::string_view rest = text;
  std::uint64_t nodes_before = 0;
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    std::string_view part = trimmed(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    std::uint32_t repeated = 1;
    if (const auto open = part.find("(x"); open != std::string_view::npos) {
      if (part.back() != ')') return std::nullopt;
      const auto times = to_number(part.substr(open + 2, part.size() - open - 3));
      if (!times) return std::nullopt;
      repeated = *times;
      part = part.substr(0, open);
    }
    const auto tasks = to_number(part);
    if (!tasks || *tasks == 0) return std::nullopt;
    nodes_before += repeated;
    if (node < nodes_before) return tasks;
  }
  return std::nullopt;
}

}  // namespace weft::bootstrap
