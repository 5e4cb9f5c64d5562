#pragma once

#include <string>

#include "base/result.h"
#include "base/secret.h"
#include "base/settings.h"
#include "bootstrap/address.h"

namespace weft::bootstrap {

/// The secret of a job of several ranks: WEFT_SECRET, or the content of WEFT_SECRET_FILE, or, if the service is on
/// loopback only, one derived from address, user and job name — other users' processes on this machine could then guess
/// it, but nobody outside the machine reaches the service.
/// Errors: invalid_argument — there is none; malformed, system, not_found, unsupported — as read_secret_file.
Result<Secret> find_secret(const Settings& settings, const HostPort& address);

/// Reads a secret of 64 hex digits, blanks around it allowed.
/// Errors: not_found, system — it cannot be read; unauthenticated — other users may read or write it, or own it;
/// malformed — it holds something else.
Result<Secret> read_secret_file(const std::string& path);

}  // namespace weft::bootstrap
