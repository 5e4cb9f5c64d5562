#include "bootstrap/identity.h"

#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/text.h"
#include "bootstrap/address.h"
#include "bootstrap/launchers.h"
#include "bootstrap/secret_source.h"

namespace weft::bootstrap {
namespace {

/// torchrun's agent keeps MASTER_PORT for a store of its own and says so; the next port is free by the same reckoning
/// on every rank.
bool agent_holds_master_port(const Settings::Lookup& environment) {
  return find_value(environment, "TORCHELASTIC_USE_AGENT_STORE") == "True";
}

Result<HostPort> master_address(const Settings::Lookup& environment, const Place& place) {
  const auto host = find_value(environment, "MASTER_ADDR");
  const auto port = find_value(environment, "MASTER_PORT");
  if (!host && !port) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("rank {} of {} ({}) does not know where the job meets", place.rank, place.size, place.source),
        "Set WEFT_ADDRESS to host:port of rank 0's machine, the same on every rank"};
  }
  if (!host || !port) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} is set, but {} is not ({})", host ? "MASTER_ADDR" : "MASTER_PORT",
                             host ? "MASTER_PORT" : "MASTER_ADDR", place.source),
                 "Set both, or WEFT_ADDRESS to host:port of rank 0's machine"};
  }
  const bool has_brackets = host->front() == '[';
  auto address =
      parse_host_port(has_brackets || host->find(':') == std::string::npos ? fmt::format("{}:{}", *host, *port)
                                                                           : fmt::format("[{}]:{}", *host, *port));
  if (!address) return address.error().within("MASTER_ADDR and MASTER_PORT");
  if (agent_holds_master_port(environment)) {
    constexpr std::uint16_t kLastPort = 65'535;
    address->port = address->port == kLastPort ? kLastPort - 1 : address->port + 1;
    log::info("bootstrap: torchrun's agent holds MASTER_PORT, so the job meets at port {}", address->port);
  }
  return address;
}

Result<HostPort> find_address(const Settings& settings, const Settings::Lookup& environment, const Place& place) {
  if (!settings.is_set(Setting::address)) return master_address(environment, place);
  auto address = parse_host_port(settings.text(Setting::address));
  if (!address) return address.error().within("WEFT_ADDRESS");
  return address;
}

Identity lone_identity(const Settings::Lookup& environment, std::string source) {
  if (const auto contradiction = find_contradiction(environment)) {
    log::warning("world size 1 although launched as {}: set WEFT_RANK, WEFT_SIZE and WEFT_ADDRESS to join the ranks",
                 *contradiction);
  }
  Identity identity;
  identity.secret = Secret::random();
  identity.source = std::move(source);
  return identity;
}

}  // namespace

Result<Identity> identify(const Settings& settings, const Settings::Lookup& environment) {
  // Settings may come from a command line too, and they win over the variables of the same name.
  const Settings::Lookup combined = [&](const std::string& name) -> std::optional<std::string> {
    for (const Setting id : {Setting::rank, Setting::size, Setting::local_rank, Setting::local_size}) {
      if (setting_specs()[static_cast<std::size_t>(id)].name != name) continue;
      return settings.is_set(id) ? std::optional(settings.text(id)) : std::nullopt;
    }
    return environment(name);
  };
  WEFT_TRY_ASSIGN(const auto place, find_place(combined));
  if (!place) return lone_identity(combined, "no launcher");
  if (place->size == 1) return lone_identity(combined, place->source);
  WEFT_TRY_ASSIGN(const HostPort address, find_address(settings, environment, *place));
  if (address.port == 0) {
    return Error{ErrorCode::invalid_argument, "port 0 is no place to meet at",
                 "Choose a port that is free on rank 0's machine"};
  }
  Identity identity;
  identity.rank = Rank{place->rank};
  identity.size = place->size;
  identity.local_rank = place->local_rank;
  identity.local_size = place->local_size;
  identity.address = format_host_port(address.host, address.port);
  WEFT_TRY_ASSIGN(identity.secret, find_secret(settings, address));
  identity.source = place->source;
  return identity;
}

}  // namespace weft::bootstrap
