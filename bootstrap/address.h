#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace weft::bootstrap {

/// Where a service listens, as text: a host name or an address literal, and a port.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;
};

/// Reads "host:port", "10.0.0.1:4000" or "[fe80::1%eth0]:4000"; surrounding blanks are ignored.
/// Errors: malformed — says what is wrong and what the form is. Thread: any.
Result<HostPort> parse_host_port(std::string_view text);

/// The form that parse_host_port reads; an IPv6 literal gets its brackets. Thread: any.
std::string format_host_port(std::string_view host, std::uint16_t port);

/// True for "localhost" and for literals of the loopback network: nothing sent there leaves the machine. Thread: any.
bool is_loopback_host(std::string_view host) noexcept;

}  // namespace weft::bootstrap
