#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/settings.h"
#include "bootstrap/session.h"
#include "transport/transport.h"

namespace weft::collectives {

/// The transport that WEFT_TRANSPORTS calls "shm" or "tcp", for this rank of the group and so many of its peers.
/// Thread: blocking. Errors: those of the transport; for tcp, also of WEFT_INTERFACE.
Result<std::unique_ptr<transport::Transport>> make_transport(const std::string& name, std::size_t num_candidates,
                                                             const bootstrap::Session& session,
                                                             const bootstrap::Group& group, const Settings& settings);

}  // namespace weft::collectives
