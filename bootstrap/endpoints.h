#pragma once

#include <vector>

#include <boost/asio/ip/tcp.hpp>

#include "base/result.h"
#include "bootstrap/address.h"

namespace weft::bootstrap {

/// Every socket address that a host name and port stand for: IPv4 first, each once. Blocks in the system's resolver.
/// Errors: not_found — the name does not resolve (now: a later call may succeed). Internal: Asio types.
Result<std::vector<boost::asio::ip::tcp::endpoint>> resolve(const HostPort& address);

}  // namespace weft::bootstrap
