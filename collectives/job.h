#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "base/settings.h"
#include "bootstrap/identity.h"
#include "bootstrap/session.h"

namespace weft::collectives {

/// Set by a launcher that puts the rank in front of every line: log lines do without it then. Not a setting.
inline constexpr const char* kTaggedVariable = "_WEFT_TAGGED";

/// This process's membership of a job, shared by all communicators that were made in it.
struct Job {
  Settings settings;
  bootstrap::Identity identity;
  std::unique_ptr<bootstrap::Session> session;  ///< Null for a job of one rank.

  /// Joins the job that the environment describes. Errors: those of Settings, identify and join.
  static Result<std::shared_ptr<Job>> from_environment();
  /// Joins the job of a unique id.
  static Result<std::shared_ptr<Job>> from_unique_id(const bootstrap::UniqueId& id, Rank rank, std::uint32_t size);
};

/// Founds a job that meets in this process; the service lives until the process ends. Thread: any.
Result<bootstrap::UniqueId> found_job_here(std::uint32_t size);

}  // namespace weft::collectives
