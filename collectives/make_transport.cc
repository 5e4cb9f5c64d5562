#include "collectives/make_transport.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "bootstrap/interfaces.h"
#include "transport/shm/shm_transport.h"
#include "transport/tcp/tcp.h"

namespace weft::collectives {
namespace {

/// WEFT_INTERFACE's, if it is set; else the address by which this rank reaches the service, then the other ordinary
/// ones.
Result<std::vector<std::string>> tcp_addresses(const bootstrap::Session& session, const Settings& settings) {
  std::vector<std::string> addresses;
  if (!settings.is_set(Setting::interface)) addresses.push_back(session.local_address());
  WEFT_TRY_ASSIGN(const auto existing, bootstrap::list_interfaces());
  WEFT_TRY_ASSIGN(const auto selected, bootstrap::select_interfaces(existing, settings.text(Setting::interface)));
  const bool is_loopback_job = !addresses.empty() && addresses.front().starts_with("127.");
  if (is_loopback_job) return addresses;  // Whoever meets on loopback stays there: nothing else is opened.
  for (const auto& interface : selected) {
    if (std::find(addresses.begin(), addresses.end(), interface.address) == addresses.end()) {
      addresses.push_back(interface.address);
    }
  }
  return addresses;
}

}  // namespace

Result<std::unique_ptr<transport::Transport>> make_transport(const std::string& name, std::size_t num_candidates,
                                                             const bootstrap::Session& session,
                                                             const bootstrap::Group& group, const Settings& settings) {
  if (name == "shm") {
    transport::shm::ShmOptions options;
    options.rank = Rank{group.own_index};
    options.num_local_ranks = static_cast<std::uint32_t>(num_candidates + 1);
    const std::string& copy = settings.text(Setting::shm_copy);
    if (copy == "staging") options.plain_copy = transport::shm::PlainCopy::staging;
    if (copy == "readv") options.plain_copy = transport::shm::PlainCopy::readv;
    return transport::shm::make_shm_transport(options);
  }
  transport::tcp::TcpOptions options;
  options.rank = Rank{group.own_index};
  options.secret = session.secret().derive(fmt::format("tcp {}", group.id));
  WEFT_TRY_ASSIGN(options.listen_on, tcp_addresses(session, settings));
  options.streams = static_cast<std::uint32_t>(std::max<std::int64_t>(1, settings.integer(Setting::tcp_streams)));
  options.silence_max = std::min(options.silence_max, settings.duration(Setting::timeout));
  options.socket_buffer_bytes = settings.bytes(Setting::tcp_buffer);
  return transport::tcp::create_tcp(options);
}

}  // namespace weft::collectives
