#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/random.h"
#include "base/units.h"
#include "bootstrap/address.h"
#include "bootstrap/interfaces.h"
#include "bootstrap/network_session.h"

namespace weft::bootstrap {
namespace {

/// How long rank 0 looks for a service that somebody else runs at an address that is not of this machine.
constexpr Nanos kForeignServiceTimeout = std::chrono::seconds(5);
/// A service of this job at a busy port answers in milliseconds; a busy port is to be reported within a second.
constexpr Nanos kProbeTimeout = std::chrono::milliseconds(500);

std::string own_host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

/// Waits between attempts: short at first, then longer, and never in step with the other ranks.
class Backoff {
 public:
  explicit Backoff(std::uint64_t seed) : random_(seed) {}
  void wait(Deadline deadline) {
    const auto spread = static_cast<Nanos::rep>(random_.below(static_cast<std::uint64_t>(next_.count())));
    std::this_thread::sleep_for(std::min(next_ / 2 + Nanos{spread / 2}, deadline.remaining()));
    constexpr Nanos kLongest = std::chrono::milliseconds(500);
    next_ = std::min(2 * next_, kLongest);
  }

 private:
  Random random_;
  Nanos next_ = std::chrono::milliseconds(10);
};

/// The machine itself knows no way there: no process, firewall or cable elsewhere is to blame.
bool has_no_way(const Error& error) noexcept {
  const int err = error.system_errno();
  return err == ENETUNREACH || err == EHOSTUNREACH || err == ENETDOWN;
}

std::string remedy_of_no_way(const HostPort& address) {
  if (is_loopback_host(address.host)) {
    return "The loopback interface is down or missing here: bring it up (ip link set lo up)";
  }
  return fmt::format(
      "This host has no route to {}: look whether its interfaces are up (ip addr) and at its routes "
      "(ip route)",
      address.host);
}

/// One attempt's outcome; without a client, exactly one of the errors is set.
struct Attempt {
  std::unique_ptr<Client> client;
  std::optional<Error> refusal;    ///< Trying again is of no use.
  std::optional<Error> transient;  ///< May be otherwise a moment later.
};

Attempt failed_attempt(const Error& error) {
  const bool is_final = error.code() == ErrorCode::unauthenticated || error.code() == ErrorCode::unsupported ||
                        error.code() == ErrorCode::malformed;
  return is_final ? Attempt{nullptr, error, std::nullopt} : Attempt{nullptr, std::nullopt, error};
}

/// Connects and gets accepted as a member. A service under a flood of strangers may drop a connection before that.
Attempt try_to_enter(const Identity& identity, const HostPort& address, Deadline deadline) {
  constexpr Nanos kAcceptTimeout = std::chrono::seconds(10);
  auto connected = Client::connect(address, identity.secret, deadline);
  if (!connected) return failed_attempt(connected.error());
  std::unique_ptr<Client> client = std::move(*connected);
  JoinMessage message{identity.rank, identity.size, static_cast<std::uint32_t>(getpid()), timeout_of(deadline),
                      own_host_name()};
  const Deadline limit = Deadline::after(kAcceptTimeout);
  if (const Status sent = client->send(std::move(message), limit); !sent) return failed_attempt(sent.error());
  auto answer = client->receive(kOverheadSizeMax, limit);
  if (!answer) return failed_attempt(answer.error());
  if (const auto* refused = std::get_if<RefusedMessage>(&*answer)) return {nullptr, refused->error, std::nullopt};
  if (!std::holds_alternative<AcceptedMessage>(*answer)) {
    return failed_attempt(Error{ErrorCode::malformed, "the service neither accepts nor refuses"});
  }
  return {std::move(client), std::nullopt, std::nullopt};
}

Result<std::unique_ptr<Client>> enter(const Identity& identity, const HostPort& address, Deadline deadline) {
  const Nanos started_at = steady_clock().now();
  Backoff backoff{identity.rank.value() + (static_cast<std::uint64_t>(getpid()) << 32)};
  std::optional<Error> latest;
  while (true) {
    Attempt attempt = try_to_enter(identity, address, deadline);
    if (attempt.client) return std::move(attempt.client);
    if (attempt.refusal) {
      return attempt.refusal->within(
          fmt::format("rank {} joins the job at {}", identity.rank.value(), identity.address));
    }
    // The last attempt is cut short by the deadline; what the one before it met says more.
    if (!latest || !deadline.has_passed()) latest = attempt.transient;
    if (deadline.has_passed()) {
      return Error{ErrorCode::timeout,
                   fmt::format("rank {} of {} on host {} found no service at {} in {}: {}", identity.rank.value(),
                               identity.size, own_host_name(), identity.address,
                               format_duration(steady_clock().now() - started_at), latest->message()),
                   has_no_way(*latest)
                       ? remedy_of_no_way(address)
                       : "Rank 0 runs the service and never appeared: check that it was started, that this address is "
                         "its machine's, and that no firewall is between"}
          .about(Rank{0});
    }
    log::debug("bootstrap: {}", attempt.transient->message());
    backoff.wait(deadline);
  }
}

/// Waits until everybody has joined.
Status await_welcome(Client& client, const Identity& identity, Deadline deadline) {
  auto answer = client.receive(kOverheadSizeMax, with_grace(deadline));
  const std::string where = fmt::format("the service at {}", identity.address);
  if (!answer) {
    const ErrorCode code = answer.error().code();
    if (code == ErrorCode::closed) {
      return Error::from_errno(ErrorCode::peer_failed, fmt::format("{} is gone: {}", where, answer.error().doing()),
                               answer.error().system_errno(), "It runs in the process of rank 0 as a rule");
    }
    return answer.error().within(where);
  }
  if (std::holds_alternative<WelcomeMessage>(*answer)) return {};
  if (const auto* refused = std::get_if<RefusedMessage>(&*answer)) return refused->error;
  if (std::holds_alternative<ClosingMessage>(*answer)) return Error{ErrorCode::closed, where + " has ended"};
  return Error{ErrorCode::malformed, where + " sent an unexpected message"};
}

/// Nullopt if a service of this very job answers; else why there is none. Somebody else says so at once; a service that
/// is under a flood of strangers may hang up on the first attempt.
std::optional<Error> look_for_service(const HostPort& address, const Secret& secret, Deadline deadline) {
  Backoff backoff{1};
  std::optional<Error> latest;
  while (true) {
    const auto found = Client::connect(address, secret, deadline);
    if (found) return std::nullopt;
    // The last attempt is cut short by the deadline; what the one before it met says more.
    if (!latest || !deadline.has_passed()) latest = found.error();
    if (deadline.has_passed() || failed_attempt(found.error()).refusal) return latest;
    backoff.wait(deadline);
  }
}

/// Starts the service in this process, or finds that one of this job is there already (then: nothing).
Result<std::unique_ptr<Service>> serve_or_find(const Identity& identity, const HostPort& address, Deadline deadline) {
  const Deadline foreign = Deadline::after(kForeignServiceTimeout);
  const Deadline last = foreign.at() < deadline.at() ? foreign : deadline;
  Backoff backoff{0};
  while (true) {
    auto started =
        Service::start({identity.address, identity.size, identity.secret, std::max(deadline.remaining(), Nanos{1})});
    if (started) return started;
    const Error& why = started.error();
    const bool is_busy = why.code() == ErrorCode::address_in_use;
    if (!is_busy && why.code() != ErrorCode::not_found) return why;
    // Somebody is there, or the address is another machine's: a service of this very job may have been started there.
    const auto none = look_for_service(address, identity.secret, Deadline::after(kProbeTimeout));
    if (!none) {
      log::info("bootstrap: a service of this job answers at {}", identity.address);
      return std::unique_ptr<Service>{};
    }
    if (is_busy && has_no_way(*none)) {
      // Whoever has the port may well be the service.
      return Error::from_errno(ErrorCode::not_found, fmt::format("reaching the service at {}", identity.address),
                               none->system_errno(), remedy_of_no_way(address));
    }
    if (is_busy || last.has_passed()) return why;
    backoff.wait(last);
  }
}

/// What this rank offers its peers: what WEFT_INTERFACE names, or else where it reaches the service from. Loopback is
/// no offer if the service is known to the others by another address.
Result<std::string> choose_local_address(const Identity& identity, const Settings& settings, Client* client) {
  const std::string& pattern = settings.text(Setting::interface);
  if (client != nullptr && pattern.empty()) {
    WEFT_TRY_ASSIGN(const HostPort address, parse_host_port(identity.address));
    if (!client->is_local_address_loopback() || is_loopback_host(address.host)) return client->local_address();
  }
  if (client == nullptr && pattern.empty()) return std::string("127.0.0.1");
  WEFT_TRY_ASSIGN(const auto existing, list_interfaces());
  WEFT_TRY_ASSIGN(const auto chosen, select_interfaces(existing, pattern));
  log::info("bootstrap: interface {} ({}) was chosen", chosen.front().name, chosen.front().address);
  return chosen.front().address;
}

}  // namespace

Result<std::unique_ptr<Session>> join(const Identity& identity, const Settings& settings) {
  if (identity.size == 0 || identity.rank.value() >= identity.size) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("rank {} is not in a job of {} ranks", identity.rank.value(), identity.size)};
  }
  if (identity.address.empty()) {
    if (identity.size > 1) return Error{ErrorCode::invalid_argument, "a job of several ranks needs an address"};
    WEFT_TRY_ASSIGN(auto local_address, choose_local_address(identity, settings, nullptr));
    return make_lone_session(identity, std::move(local_address));
  }
  WEFT_TRY_ASSIGN(const HostPort address, parse_host_port(identity.address));
  const Deadline deadline = Deadline::after(settings.duration(Setting::bootstrap_timeout));
  NetworkSession::Parts parts;
  parts.identity = identity;
  // Whoever made a unique id serves it.
  if (identity.rank == Rank{0} && identity.source != kUniqueIdSource) {
    WEFT_TRY_ASSIGN(parts.service, serve_or_find(identity, address, deadline));
  }
  WEFT_TRY_ASSIGN(parts.client, enter(identity, address, deadline));
  WEFT_TRY_ASSIGN(parts.local_address, choose_local_address(identity, settings, parts.client.get()));
  WEFT_TRY(await_welcome(*parts.client, identity, deadline));
  return std::unique_ptr<Session>(std::make_unique<NetworkSession>(std::move(parts)));
}

}  // namespace weft::bootstrap
