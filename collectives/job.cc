#include "collectives/job.h"

#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "base/settings_report.h"

namespace weft::collectives {
namespace {

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string{value};
}

/// WEFT_ variables that mean nothing are slips of the finger: said once, with the nearest name.
void warn_of_unknown_variables() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text{*entry};
    // WEFT_TEST_ variables are between scripts and tests.
    if (!text.starts_with("WEFT_TEST_")) names.emplace_back(text.substr(0, text.find('=')));
  }
  for (const std::string& unknown : Settings::unknown_variables(names)) log::warning("unknown variable {}", unknown);
}

Result<std::shared_ptr<Job>> join(Settings settings, bootstrap::Identity identity) {
  apply_log_level(settings);
  if (!environment(kTaggedVariable)) log::set_prefix(fmt::format("rank {}", identity.rank.value()));
  warn_of_unknown_variables();
  auto job = std::make_shared<Job>(Job{std::move(settings), std::move(identity), nullptr});
  if (job->identity.size > 1) {
    WEFT_TRY_ASSIGN(job->session, bootstrap::join(job->identity, job->settings));
  }
  return job;
}

}  // namespace

Result<std::shared_ptr<Job>> Job::from_environment() {
  WEFT_TRY_ASSIGN(Settings settings, Settings::from_environment());
  WEFT_TRY_ASSIGN(bootstrap::Identity identity, bootstrap::identify(settings, environment));
  return join(std::move(settings), std::move(identity));
}

Result<std::shared_ptr<Job>> Job::from_unique_id(const bootstrap::UniqueId& id, Rank rank, std::uint32_t size) {
  WEFT_TRY_ASSIGN(Settings settings, Settings::from_environment());
  WEFT_TRY_ASSIGN(bootstrap::Identity identity, bootstrap::identity_of(id, rank, size));
  return join(std::move(settings), std::move(identity));
}

Result<bootstrap::UniqueId> found_job_here(std::uint32_t size) {
  WEFT_TRY_ASSIGN(const Settings settings, Settings::from_environment());
  WEFT_TRY_ASSIGN(bootstrap::Founded founded, bootstrap::found_job(size, settings));
  // Ranks may join at any later time, and nobody says when the last one has: services end with the process.
  static std::mutex mutex;
  static auto& services = *new std::vector<std::unique_ptr<bootstrap::Service>>;
  const std::lock_guard lock(mutex);
  services.push_back(std::move(founded.service));
  return founded.id;
}

}  // namespace weft::collectives
