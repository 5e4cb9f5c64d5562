#include "transport/tcp/tcp_transport.h"

#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "base/check.h"
#include "base/log.h"
#include "base/out_of_memory.h"
#include "base/random.h"

namespace weft::transport::tcp {
namespace {

/// Up to so many peers one recv for each costs less than asking epoll first.
constexpr std::size_t kPollAllMax = 4;

/// How often the kernel is asked for silent peers: rarely against the time that it is about.
constexpr Nanos kLookInterval = std::chrono::seconds(1);
/// The clock is read once in so many polls, each of which is a system call at least.
constexpr std::uint32_t kPollsPerLook = 64;

timespec to_timespec(Nanos time) noexcept {
  return {.tv_sec = time.count() / 1'000'000'000, .tv_nsec = time.count() % 1'000'000'000};
}

}  // namespace

Result<std::unique_ptr<Transport>> create_tcp(TcpOptions options) {
  if (options.listen_on.empty()) {
    return Error{ErrorCode::invalid_argument, "tcp has no address to listen on", "Set WEFT_INTERFACE"};
  }
  if (options.streams < 1 || options.streams > kStreamsMax) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} streams per peer; 1 to {} are possible", options.streams, kStreamsMax)};
  }
  raise_descriptor_limit();
  Self self{.rank = options.rank, .secret = options.secret.derive("tcp")};
  fill_secure_random(self.id);
  Published published{.id = self.id, .num_streams = options.streams};
  std::vector<Fd> listeners;
  for (const std::string& text : options.listen_on) {
    auto wanted = SocketAddress::parse(text, 0);
    if (!wanted) return wanted.error();
    WEFT_TRY_ASSIGN(Fd listener, tcp::listen_on(*wanted));
    published.addresses.push_back(SocketAddress::local_of(listener.get()));
    listeners.push_back(std::move(listener));
  }
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.is_open()) return descriptor_error("creating an epoll descriptor", errno);
  return std::unique_ptr<Transport>(std::make_unique<TcpTransport>(
      std::move(options), std::move(self), std::move(published), std::move(listeners), std::move(epoll)));
}

TcpTransport::TcpTransport(TcpOptions options, Self self, Published published, std::vector<Fd> listeners, Fd epoll)
    : options_(std::move(options)),
      self_(std::move(self)),
      published_(std::move(published)),
      listeners_(std::move(listeners)),
      epoll_(std::move(epoll)) {}

TcpTransport::~TcpTransport() {
  // Links that were closed hand over what was posted, as long as it moves. Closing a socket with unread input resets
  // the connection, and a reset drops what the peer's kernel has not taken yet: so input is discarded, and the sockets
  // are closed only when everything was acknowledged.
  std::uint64_t last_moved = 0;
  Deadline deadline = Deadline::after(options_.linger);
  for (;;) {
    std::vector<pollfd> waiting;
    std::vector<TcpEndpoint::Watch> watches;
    std::uint64_t moved = 0;
    std::uint64_t left = 0;
    for (const Link& link : links_) {
      if (!link.endpoint->is_closing()) continue;
      link.endpoint->flush();
      link.endpoint->discard_input();
      link.endpoint->collect_watches(watches);
      const std::uint64_t unacknowledged = link.endpoint->bytes_unacknowledged();
      moved += link.endpoint->bytes_sent() - std::min(link.endpoint->bytes_sent(), unacknowledged);
      left += unacknowledged + (link.endpoint->is_flushing() ? 1 : 0);
    }
    if (left == 0) break;
    if (moved != last_moved) {
      last_moved = moved;
      deadline = Deadline::after(options_.linger);
    }
    if (deadline.has_passed()) {
      log::warning("tcp: a peer takes nothing any more; {} bytes or more of closed links are lost", left);
      break;
    }
    for (const auto& watch : watches) {
      if (watch.wants_room) waiting.push_back({.fd = watch.fd, .events = POLLOUT, .revents = 0});
    }
    constexpr int kLookAgainMs = 1;  // For acknowledgements and input, which are not waited for.
    (void)::poll(waiting.data(), waiting.size(), kLookAgainMs);
  }
}

std::vector<Connected> TcpTransport::connect(std::span<const PeerAddress> peers, Deadline deadline) {
  std::vector<PeerAddress> fresh;
  for (const PeerAddress& peer : peers) {
    if (!link_of_.contains(peer.peer)) fresh.push_back(peer);
  }
  Connector connector(self_, published_, listeners_, arrivals_, options_.socket_buffer_bytes);
  std::vector<Connector::Outcome> outcomes = connector.run(fresh, deadline);
  std::vector<Connected> settled;
  std::size_t next = 0;
  for (const PeerAddress& peer : peers) {
    if (link_of_.contains(peer.peer) && (next == outcomes.size() || outcomes[next].peer != peer.peer)) {
      settled.push_back(
          {peer.peer, Error{ErrorCode::invalid_argument, "this peer is connected already"}.about(peer.peer)});
      continue;
    }
    Connector::Outcome& outcome = outcomes[next++];
    if (!outcome.streams) {
      settled.push_back({peer.peer, outcome.streams.error()});
      continue;
    }
    link_of_[peer.peer] = links_.size();
    links_.push_back({.endpoint = std::make_unique<TcpEndpoint>(peer.peer, std::move(*outcome.streams), regions_)});
    sync_watches(links_.size() - 1);
    log::info("rank {} is reached by {}", peer.peer.value(), links_.back().endpoint->describe());
    settled.push_back({peer.peer, links_.back().endpoint.get()});
  }
  return settled;
}

Endpoint* TcpTransport::endpoint(Rank peer) noexcept {
  const auto found = link_of_.find(peer);
  return found == link_of_.end() ? nullptr : links_[found->second].endpoint.get();
}

Result<Registration> TcpTransport::register_memory(std::byte* base, std::uint64_t size_bytes,
                                                   device::MemoryKind kind) noexcept {
  return or_out_of_memory([&]() -> Result<Registration> {
    if (!device::is_cpu_accessible(kind)) {
      return Error{ErrorCode::unsupported, "tcp moves host memory only; device memory goes through a host buffer"};
    }
    return regions_.add(base, size_bytes, kind);
  });
}

void TcpTransport::release_memory(const Registration& registration) noexcept {
  WEFT_CHECK(regions_.remove(registration), "a registration is released once, where it was made");
}

std::size_t TcpTransport::poll(std::span<Completion> out) noexcept {
  std::size_t count = 0;
  if (links_.empty()) return 0;
  if (++num_polls_ % kPollsPerLook == 0) look_for_silence_seldom();
  first_link_ = first_link_ + 1 < links_.size() ? first_link_ + 1 : 0;
  const bool polls_all = links_.size() <= kPollAllMax;
  if (!polls_all) find_due_links();
  for (std::size_t i = 0; i < links_.size() && count < out.size(); ++i) {
    std::size_t index = first_link_ + i;
    if (index >= links_.size()) index -= links_.size();
    Link& link = links_[index];
    if (!polls_all && !link.is_due) continue;
    link.is_due = false;
    count += link.endpoint->poll(out.subspan(count));
    if (!polls_all) sync_watches(index);
  }
  return count;
}

void TcpTransport::look_for_silence_seldom() noexcept {
  const Nanos now = steady_clock().now();
  if (now - last_look_ < std::min(kLookInterval, options_.silence_max / 8)) return;
  last_look_ = now;
  for (Link& link : links_) link.endpoint->look_for_silence(now, options_.silence_max);
}

void TcpTransport::find_due_links() noexcept {
  std::array<epoll_event, 128> events;
  const int got = ::epoll_wait(epoll_.get(), events.data(), events.size(), 0);
  for (int i = 0; i < got; ++i) links_[events[static_cast<std::size_t>(i)].data.u64].is_due = true;
  for (Link& link : links_) link.is_due |= link.endpoint->has_backlog() || link.endpoint->has_work();
}

void TcpTransport::sync_watches(std::size_t index) noexcept {
  Link& link = links_[index];
  if (link.sockets_version != link.endpoint->sockets_version()) {
    link.sockets_version = link.endpoint->sockets_version();
    link.watched.clear();  // A closed socket has left epoll by itself.
  }
  std::vector<TcpEndpoint::Watch> wanted;
  try {
    link.endpoint->collect_watches(wanted);
  } catch (const std::bad_alloc&) {
    return;  // What is watched stays; a sleeper wakes now and then and tries again.
  }
  if (wanted == link.watched) return;
  const auto fd_is = [](int fd) { return [fd](const TcpEndpoint::Watch& watch) { return watch.fd == fd; }; };
  for (const auto& old : link.watched) {
    if (std::ranges::none_of(wanted, fd_is(old.fd))) (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, old.fd, nullptr);
  }
  for (const auto& watch : wanted) {
    epoll_event event{};
    event.events = (watch.wants_input ? EPOLLIN : 0u) | (watch.wants_room ? EPOLLOUT : 0u);
    event.data.u64 = index;
    const bool is_known = std::ranges::any_of(link.watched, fd_is(watch.fd));
    const int result = ::epoll_ctl(epoll_.get(), is_known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, watch.fd, &event);
    WEFT_CHECK(result == 0 || errno == ENOSPC || errno == ENOMEM, "an open socket can be watched");
  }
  link.watched = std::move(wanted);
}

bool TcpTransport::arm(Wake) noexcept {
  look_for_silence_seldom();
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (links_[i].endpoint->has_work()) return false;
    sync_watches(i);
  }
  epoll_event event;
  return ::epoll_wait(epoll_.get(), &event, 1, 0) == 0;
}

void TcpTransport::sleep(Nanos limit) noexcept {
  pollfd one{.fd = epoll_.get(), .events = POLLIN, .revents = 0};
  const timespec timeout = to_timespec(std::max(limit, Nanos{0}));
  (void)::ppoll(&one, 1, &timeout, nullptr);  // EINTR: the caller polls and sleeps again.
}

}  // namespace weft::transport::tcp
