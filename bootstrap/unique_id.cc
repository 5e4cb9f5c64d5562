#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <sodium.h>

#include "base/check.h"
#include "base/log.h"
#include "bootstrap/address.h"
#include "bootstrap/interfaces.h"
#include "bootstrap/session.h"

namespace weft::bootstrap {
namespace {

struct UniqueIdWire {
  std::uint16_t version;
  std::uint16_t address_size;
  std::array<char, 72> address;  ///< "host:port"; an IPv6 literal with its interface takes up to 70.
  std::array<std::byte, Secret::kSize> secret;
  std::array<std::byte, 4> reserved;
  std::array<std::byte, 16> checksum;  ///< BLAKE2b of everything before it: against truncation and mix-ups.
};
static_assert(sizeof(UniqueIdWire) == UniqueId::kSize);
constexpr std::uint16_t kVersion = 1;

std::array<std::byte, 16> checksum_of(const UniqueIdWire& wire) {
  WEFT_CHECK(sodium_init() >= 0, "libsodium initialises");
  std::array<std::byte, 16> checksum;
  crypto_generichash(reinterpret_cast<unsigned char*>(checksum.data()), checksum.size(),
                     reinterpret_cast<const unsigned char*>(&wire), offsetof(UniqueIdWire, checksum), nullptr, 0);
  return checksum;
}

Result<UniqueId> make_unique_id(const std::string& address, const Secret& secret) {
  UniqueIdWire wire{};
  if (address.size() > wire.address.size()) {
    return Error{ErrorCode::limit_exceeded, fmt::format("the address {} does not fit into a unique id", address)};
  }
  wire.version = kVersion;
  wire.address_size = static_cast<std::uint16_t>(address.size());
  std::memcpy(wire.address.data(), address.data(), address.size());
  wire.secret = secret.bytes();
  wire.checksum = checksum_of(wire);
  UniqueId id;
  std::memcpy(id.bytes.data(), &wire, sizeof wire);
  sodium_memzero(&wire, sizeof wire);
  return id;
}

}  // namespace

Result<Founded> found_job(std::uint32_t size, const Settings& settings) {
  WEFT_TRY_ASSIGN(const auto existing, list_interfaces());
  WEFT_TRY_ASSIGN(const auto chosen, select_interfaces(existing, settings.text(Setting::interface)));
  log::info("bootstrap: interface {} ({}) was chosen", chosen.front().name, chosen.front().address);
  Service::Options options;
  options.listen_address = format_host_port(chosen.front().address, 0);
  options.size = size;
  options.secret = Secret::random();
  options.join_timeout = settings.duration(Setting::bootstrap_timeout);
  const Secret secret = options.secret;
  Founded founded;
  WEFT_TRY_ASSIGN(founded.service, Service::start(std::move(options)));
  WEFT_TRY_ASSIGN(founded.id, make_unique_id(founded.service->address(), secret));
  return founded;
}

Result<Identity> identity_of(const UniqueId& id, Rank rank, std::uint32_t size) {
  UniqueIdWire wire;
  std::memcpy(&wire, id.bytes.data(), sizeof wire);
  if (wire.version != kVersion || wire.checksum != checksum_of(wire) || wire.address_size > wire.address.size()) {
    return Error{ErrorCode::malformed, "these bytes are not a unique id of this version of Weft",
                 "All 128 bytes must reach every rank unchanged"};
  }
  if (rank.value() >= size) {
    return Error{ErrorCode::invalid_argument, fmt::format("rank {} is not in a job of {} ranks", rank.value(), size)};
  }
  Identity identity;
  identity.rank = rank;
  identity.size = size;
  identity.address.assign(wire.address.data(), wire.address_size);
  WEFT_TRY(parse_host_port(identity.address));
  identity.secret = Secret::from_bytes(wire.secret);
  sodium_memzero(&wire, sizeof wire);
  identity.source = kUniqueIdSource;
  return identity;
}

}  // namespace weft::bootstrap
