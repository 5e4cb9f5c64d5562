#include "transport/tcp/connector.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/log.h"
#include "transport/tcp/tcp.h"

namespace weft::transport::tcp {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kAddressesMax = 64;
/// The next address is tried so long after the one before: far above a round trip, far below anyone's patience.
constexpr Nanos kStagger = 300ms;
/// An address may refuse for a moment (a full backlog); after so many rounds over all of them it does not.
constexpr int kRounds = 3;
constexpr Nanos kRoundPause = 100ms;
/// Connections whose other side has not proved anything yet: above this the oldest goes, so strangers cannot fill it.
constexpr std::size_t kStrangersMax = 512;
constexpr Nanos kStrangerPatience = 10s;

Nanos now() noexcept { return steady_clock().now(); }

}  // namespace

std::vector<std::byte> Published::encode() const {
  ByteWriter writer;
  writer.number(kAddressVersion).number(num_streams).number(static_cast<std::uint32_t>(addresses.size())).raw(id);
  for (const SocketAddress& address : addresses) address.encode(writer);
  return std::move(writer).take();
}

Result<Published> Published::decode(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  Published made;
  if (reader.number<std::uint32_t>() != kAddressVersion) {
    return Error{ErrorCode::unsupported, "the peer's tcp address is of another version"};
  }
  made.num_streams = reader.number<std::uint32_t>();
  const auto count = reader.number<std::uint32_t>();
  const auto id = reader.raw(made.id.size());
  if (id.size() == made.id.size()) std::ranges::copy(id, made.id.begin());
  if (made.num_streams < 1 || made.num_streams > kStreamsMax || count < 1 || count > kAddressesMax) {
    return Error{ErrorCode::malformed, "the peer's tcp address has an impossible number of streams or addresses"};
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    WEFT_TRY_ASSIGN(SocketAddress address, SocketAddress::decode(reader));
    made.addresses.push_back(address);
  }
  WEFT_TRY(reader.finish("the peer's tcp address"));
  return made;
}

bool Arrivals::Caller::is_complete() const noexcept { return std::ranges::all_of(streams, &Fd::is_open); }

Status Connector::prepare(Peer& peer, const PeerAddress& address) const {
  if (peer.rank == self_.rank) return Error{ErrorCode::invalid_argument, "a rank does not connect to itself"};
  WEFT_TRY_ASSIGN(peer.published, Published::decode(address.address));
  peer.num_streams = std::min(peer.published.num_streams, own_.num_streams);
  peer.is_caller = self_.rank < peer.rank;
  peer.streams.resize(peer.num_streams);
  peer.next_at = now();
  return {};
}

std::vector<Connector::Outcome> Connector::run(std::span<const PeerAddress> addresses, Deadline deadline) {
  std::vector<Peer> peers(addresses.size());
  std::size_t num_sockets = 0;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    peers[i].rank = addresses[i].peer;
    if (Status status = prepare(peers[i], addresses[i]); !status)
      peers[i].outcome = status.error().about(peers[i].rank);
    num_sockets += peers[i].num_streams;
  }
  constexpr std::size_t kSpare = 16;  // For strangers and for calls on second addresses.
  if (Status status = check_descriptors(num_sockets + kSpare); !status) {
    for (Peer& peer : peers) peer.outcome = status.error().about(peer.rank);
  }
  const auto is_open = [](const Peer& peer) { return !peer.outcome; };
  for (;;) {
    for (Peer& peer : peers) {
      if (peer.outcome) continue;
      if (peer.is_caller) {
        settle_attempts(peer);
        if (!peer.outcome) start_due_attempts(peer);
      } else {
        collect_arrival(peer);
      }
    }
    if (std::ranges::none_of(peers, is_open)) break;
    if (deadline.has_passed()) {
      for (Peer& peer : peers) {
        if (is_open(peer)) peer.outcome = no_way(peer, ErrorCode::timeout);
      }
      break;
    }
    wait(peers, deadline);
  }
  std::vector<Outcome> outcomes;
  for (Peer& peer : peers) outcomes.push_back({peer.rank, std::move(*peer.outcome)});
  return outcomes;
}

void Connector::start_due_attempts(Peer& peer) {
  // Stream 0 finds the address that works; the others follow on it (settle_attempts).
  if (peer.streams[0].is_open() || now() < peer.next_at) return;
  if (peer.next_address < peer.published.addresses.size()) {
    start_attempt(peer, peer.next_address++, 0);
    peer.next_at = now() + kStagger;
    return;
  }
  if (!peer.attempts.empty()) return;
  if (++peer.round == kRounds) {
    peer.outcome = no_way(peer, ErrorCode::peer_failed);
    return;
  }
  peer.next_address = 0;
  peer.next_at = now() + kRoundPause * peer.round;
}

void Connector::start_attempt(Peer& peer, std::size_t address_index, std::uint32_t stream_index) {
  auto fd = start_connect(peer.published.addresses[address_index], buffer_bytes_);
  if (!fd) {
    note(peer, address_index, fd.error());
    peer.next_at = now();
    return;
  }
  const IdentityWire identity{.from = self_.rank.value(),
                              .to = peer.rank.value(),
                              .stream_index = stream_index,
                              .num_streams = peer.num_streams,
                              .from_id = self_.id,
                              .to_id = peer.published.id};
  peer.attempts.push_back({Introduction::call(std::move(*fd), self_, identity), address_index, stream_index});
}

void Connector::note(Peer& peer, std::size_t address_index, const Error& error) const {
  // Only the first round's: later ones repeat it.
  if (peer.round == 0) peer.notes.push_back(peer.published.addresses[address_index].text() + ": " + error.message());
}

void Connector::settle_attempts(Peer& peer) {
  for (std::size_t i = 0; i < peer.attempts.size();) {
    Attempt& attempt = peer.attempts[i];
    using State = Introduction::State;
    if (attempt.introduction.state() == State::proposed) {
      attempt.introduction.choose();
      if (attempt.stream_index == 0) {
        // This address works; calls on the others are dropped.
        Attempt chosen = std::move(attempt);
        peer.attempts.clear();
        peer.attempts.push_back(std::move(chosen));
        i = 0;
        continue;
      }
    }
    if (attempt.introduction.state() == State::finished) {
      const std::size_t address_index = attempt.address_index;
      const std::uint32_t stream_index = attempt.stream_index;
      peer.streams[stream_index] = attempt.introduction.take_socket();
      peer.attempts.erase(peer.attempts.begin() + static_cast<std::ptrdiff_t>(i));
      if (stream_index == 0) {
        for (std::uint32_t next = 1; next < peer.num_streams; ++next) start_attempt(peer, address_index, next);
      }
      continue;
    }
    if (attempt.introduction.state() == State::failed) {
      note(peer, attempt.address_index, attempt.introduction.failure());
      if (attempt.stream_index == 0) {
        peer.next_at = now();
        peer.attempts.erase(peer.attempts.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      peer.outcome = no_way(peer, ErrorCode::peer_failed);  // The link was up already: that is no wrong address.
      return;
    }
    ++i;
  }
  if (std::ranges::all_of(peer.streams, &Fd::is_open)) peer.outcome = std::move(peer.streams);
}

void Connector::accept_callers(int listener) {
  for (;;) {
    Fd fd(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.is_open()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      // No descriptor is left: the caller waits in the backlog, and the loop must not spin on it.
      accept_is_paused_ = errno != EAGAIN;
      if (accept_is_paused_) log::warning("{}", descriptor_error("accepting a TCP connection", errno).message());
      return;
    }
    tune(fd.get(), buffer_bytes_);
    if (strangers_.size() == kStrangersMax) strangers_.erase(strangers_.begin());
    strangers_.push_back(Introduction::answer(std::move(fd), self_));
  }
}

void Connector::settle_strangers() {
  for (Introduction& stranger : strangers_) {
    if (stranger.state() == Introduction::State::working && now() - stranger.begun() > kStrangerPatience) {
      stranger.give_up(Error{ErrorCode::timeout, "no introduction in time"});
    }
    if (stranger.state() == Introduction::State::failed) {
      log::debug("a TCP connection was refused: {}", stranger.failure().message());
    }
    if (stranger.state() != Introduction::State::finished) continue;
    const IdentityWire& identity = stranger.identity();
    if (identity.num_streams > own_.num_streams) continue;
    Arrivals::Caller& caller = arrivals_.callers[Rank{identity.from}];
    // A first stream, or another life of this rank, begins anew.
    if (identity.stream_index == 0 || caller.id != identity.from_id || caller.streams.size() != identity.num_streams) {
      caller = {.id = identity.from_id, .streams = std::vector<Fd>(identity.num_streams)};
    }
    caller.streams[identity.stream_index] = stranger.take_socket();
  }
  std::erase_if(strangers_, [](const Introduction& one) {
    return one.state() == Introduction::State::failed || one.state() == Introduction::State::finished;
  });
}

void Connector::collect_arrival(Peer& peer) {
  const auto found = arrivals_.callers.find(peer.rank);
  if (found == arrivals_.callers.end() || !found->second.is_complete()) return;
  Arrivals::Caller caller = std::move(found->second);
  arrivals_.callers.erase(found);
  // Its id came through the authenticated exchange of addresses: another one is another life of that rank.
  if (caller.id != peer.published.id || caller.streams.size() != peer.num_streams) return;
  peer.outcome = std::move(caller.streams);
}

void Connector::wait(std::span<Peer> peers, Deadline deadline) {
  std::vector<pollfd> polled;
  std::vector<Introduction*> owners;
  Nanos limit = std::min<Nanos>(deadline.remaining(), 1s);
  for (const Fd& listener : listeners_) {
    polled.push_back({.fd = accept_is_paused_ ? -1 : listener.get(), .events = POLLIN, .revents = 0});
    owners.push_back(nullptr);
  }
  if (accept_is_paused_) limit = std::min<Nanos>(limit, 50ms);
  const auto add = [&](Introduction& one) {
    polled.push_back({.fd = one.fd(), .events = one.wanted_events(), .revents = 0});
    owners.push_back(&one);
  };
  for (Peer& peer : peers) {
    if (peer.outcome) continue;
    for (Attempt& attempt : peer.attempts) add(attempt.introduction);
    if (peer.is_caller && !peer.streams[0].is_open()) {
      const bool is_waiting_for_time = peer.next_address < peer.published.addresses.size() || peer.attempts.empty();
      if (is_waiting_for_time) limit = std::min(limit, std::max(Nanos{0}, peer.next_at - now()));
    }
  }
  for (Introduction& stranger : strangers_) add(stranger);
  const timespec timeout{.tv_sec = limit.count() / 1'000'000'000, .tv_nsec = limit.count() % 1'000'000'000};
  if (::ppoll(polled.data(), polled.size(), &timeout, nullptr) < 0) return;  // EINTR: looked at again soon.
  accept_is_paused_ = false;
  for (std::size_t i = 0; i < polled.size(); ++i) {
    if (polled[i].revents != 0 && owners[i] != nullptr) owners[i]->advance();
  }
  settle_strangers();
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    if (polled[i].revents != 0) accept_callers(listeners_[i].get());
  }
}

Error Connector::no_way(const Peer& peer, ErrorCode code) const {
  if (!peer.is_caller) {
    std::vector<std::string> own;
    for (const SocketAddress& address : own_.addresses) own.push_back(address.text());
    return Error{code,
                 fmt::format("rank {} did not connect over TCP; this rank listens on {}", peer.rank.value(),
                             fmt::join(own, ", ")),
                 "Look at that rank's own error, at firewalls, and at WEFT_INTERFACE"}
        .about(peer.rank);
  }
  std::vector<std::string> notes = peer.notes;
  for (const Attempt& attempt : peer.attempts) {
    notes.push_back(peer.published.addresses[attempt.address_index].text() + ": no answer");
  }
  return Error{code, fmt::format("no way to rank {} over TCP [{}]", peer.rank.value(), fmt::join(notes, "; ")),
               "Look at firewalls between the hosts, and name the right network with WEFT_INTERFACE"}
      .about(peer.rank);
}

}  // namespace weft::transport::tcp
