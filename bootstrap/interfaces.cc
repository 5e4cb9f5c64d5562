#include "bootstrap/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <memory>

#include <fmt/format.h>

#include "base/text.h"

namespace weft::bootstrap {
namespace {

/// Lower is better; see Interface.
int address_class(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const std::uint32_t value = ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
    if (value >> 24 == 127) return 4;
    return value >> 16 == 0xa9fe ? 2 : 0;  // 169.254/16 is link-local.
  }
  const in6_addr& value = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  if (IN6_IS_ADDR_LOOPBACK(&value)) return 5;
  return IN6_IS_ADDR_LINKLOCAL(&value) ? 3 : 1;
}

std::string address_text(const sockaddr* address) {
  const socklen_t size = address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) return {};
  return text.data();
}

struct Pattern {
  bool is_negated = false;
  bool is_exact = false;
  std::vector<std::string_view> entries;

  [[nodiscard]] bool matches(std::string_view name, std::string_view entry) const {
    return is_exact ? name == entry : name.starts_with(entry);
  }
  [[nodiscard]] bool matches_any(std::string_view name) const {
    return std::ranges::any_of(entries, [&](std::string_view entry) { return matches(name, entry); });
  }
};

Result<Pattern> parse_pattern(std::string_view text) {
  Pattern pattern;
  text = trimmed(text);
  if (text.starts_with('^')) {
    pattern.is_negated = true;
    text = trimmed(text.substr(1));
  }
  if (text.starts_with('=')) {
    pattern.is_exact = true;
    text = trimmed(text.substr(1));
  }
  while (!text.empty()) {
    const auto comma = text.find(',');
    const std::string_view entry = trimmed(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    if (entry.empty()) continue;
    if (entry.front() == '^' || entry.front() == '=') {
      return Error{ErrorCode::malformed, fmt::format("WEFT_INTERFACE: {} has a sign inside the list", in_quotes(entry)),
                   "^ and = stand in front of the whole list and hold for all of it: ^=eth1,docker0"};
    }
    pattern.entries.push_back(entry);
  }
  return pattern;
}

bool is_virtual(std::string_view name) {
  return name.starts_with("docker") || name.starts_with("virbr") || name.starts_with("veth");
}

std::vector<Interface> all_but_loopback(std::span<const Interface> existing) {
  std::vector<Interface> found;
  std::ranges::copy_if(existing, std::back_inserter(found),
                       [](const Interface& entry) { return entry.kind == Interface::Kind::ordinary; });
  return found;
}

std::vector<Interface> default_choice(std::span<const Interface> existing) {
  std::vector<Interface> ordinary = all_but_loopback(existing);
  if (ordinary.empty()) return {existing.begin(), existing.end()};
  std::vector<Interface> physical;
  std::ranges::copy_if(ordinary, std::back_inserter(physical),
                       [](const Interface& entry) { return !is_virtual(entry.name); });
  return physical.empty() ? ordinary : physical;
}

std::vector<Interface> matching(std::span<const Interface> existing, const Pattern& pattern) {
  std::vector<Interface> found;
  const auto take = [&](const Interface& entry) {
    const bool is_new = std::ranges::none_of(found, [&](const Interface& has) { return has.name == entry.name; });
    if (is_new) found.push_back(entry);
  };
  for (const std::string_view wanted : pattern.entries) {
    for (const Interface& entry : existing) {
      if (entry.name == wanted) take(entry);
    }
    for (const Interface& entry : existing) {
      if (pattern.matches(entry.name, wanted)) take(entry);
    }
  }
  return found;
}

std::vector<Interface> all_but_matching(std::span<const Interface> existing, const Pattern& pattern) {
  std::vector<Interface> kept;
  std::ranges::copy_if(existing, std::back_inserter(kept),
                       [&](const Interface& entry) { return !pattern.matches_any(entry.name); });
  std::vector<Interface> ordinary = all_but_loopback(kept);
  return ordinary.empty() ? kept : ordinary;
}

}  // namespace

Result<std::vector<Interface>> list_interfaces() {
  ifaddrs* raw_list = nullptr;
  if (getifaddrs(&raw_list) != 0) return Error::from_errno(ErrorCode::system, "getifaddrs", errno);
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list{raw_list, &freeifaddrs};
  std::vector<Interface> found;
  std::vector<int> classes;  // Of the address that was chosen so far, next to `found`.
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    if (entry->ifa_addr->sa_family != AF_INET && entry->ifa_addr->sa_family != AF_INET6) continue;
    const int rated = address_class(entry->ifa_addr);
    const auto known = std::ranges::find(found, entry->ifa_name, &Interface::name);
    const auto index = static_cast<std::size_t>(known - found.begin());
    if (known == found.end()) {
      const bool is_loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
      found.push_back({entry->ifa_name, address_text(entry->ifa_addr),
                       is_loopback ? Interface::Kind::loopback : Interface::Kind::ordinary});
      classes.push_back(rated);
    } else if (rated < classes[index]) {
      known->address = address_text(entry->ifa_addr);
      classes[index] = rated;
    }
  }
  return found;
}

Result<std::vector<Interface>> select_interfaces(std::span<const Interface> existing, std::string_view text) {
  WEFT_TRY_ASSIGN(const Pattern pattern, parse_pattern(text));
  std::vector<Interface> chosen;
  if (pattern.entries.empty()) {
    chosen = default_choice(existing);
  } else if (pattern.is_negated) {
    chosen = all_but_matching(existing, pattern);
  } else {
    chosen = matching(existing, pattern);
  }
  if (!chosen.empty()) return chosen;
  std::string names;
  for (const Interface& entry : existing) {
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", entry.name, entry.address);
  }
  return Error{ErrorCode::not_found,
               fmt::format("WEFT_INTERFACE={} matches no network interface that is up", in_quotes(trimmed(text))),
               fmt::format("There are: {}", names.empty() ? "none" : names)};
}

}  // namespace weft::bootstrap
