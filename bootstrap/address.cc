#include "bootstrap/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <charconv>

#include <fmt/format.h>

#include "base/text.h"

namespace weft::bootstrap {
namespace {

Error not_an_address(std::string_view text, std::string_view why) {
  return Error{ErrorCode::malformed, fmt::format("{} is not an address: {}", in_quotes(text), why),
               "Write it as host:port, for example 10.0.0.1:29400 or [fd00::1]:29400"};
}

}  // namespace

Result<HostPort> parse_host_port(std::string_view text) {
  const std::string_view whole = trimmed(text);
  const auto colon = whole.rfind(':');
  if (colon == std::string_view::npos) return not_an_address(whole, "there is no port");
  std::string_view host = trimmed(whole.substr(0, colon));
  const std::string_view digits = trimmed(whole.substr(colon + 1));
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return not_an_address(whole, "an IPv6 address needs brackets");
  }
  if (host.empty()) return not_an_address(whole, "there is no host");
  if (host.find_first_of(" \t\r\n[]") != std::string_view::npos) return not_an_address(whole, "the host is no name");
  HostPort address{std::string(host), 0};
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
  if (digits.empty() || failure != std::errc{} || end != digits.data() + digits.size()) {
    return not_an_address(whole, "the port is no number from 0 to 65535");
  }
  return address;
}

std::string format_host_port(std::string_view host, std::uint16_t port) {
  return host.find(':') == std::string_view::npos ? fmt::format("{}:{}", host, port)
                                                  : fmt::format("[{}]:{}", host, port);
}

bool is_loopback_host(std::string_view host) noexcept {
  if (host == "localhost") return true;
  const std::string text(host);
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, text.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace weft::bootstrap
