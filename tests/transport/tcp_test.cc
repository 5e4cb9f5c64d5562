#include "transport/tcp/tcp.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <thread>

#include "transport/tcp/connector.h"
#include "transport/tcp/socket.h"

namespace weft::transport::tcp {
namespace {

using namespace std::chrono_literals;
using Kind = Completion::Kind;

std::unique_ptr<Transport> make(std::uint32_t rank, const Secret& secret, std::uint32_t streams = 1) {
  auto made = create_tcp({.rank = Rank{rank}, .secret = secret, .listen_on = {"127.0.0.1"}, .streams = streams});
  EXPECT_TRUE(made) << made.error().message();
  return std::move(*made);
}

std::vector<Connected> connect(Transport& from, std::vector<PeerAddress> peers, Nanos limit = 10s) {
  return from.connect(peers, Deadline::after(limit));
}

/// Both ends connect at once; the results of the first.
std::vector<Connected> connect_pair(Transport& a, std::vector<std::byte> address_of_b, Transport& b) {
  std::thread other([&] { (void)connect(b, {{Rank{0}, a.address()}}); });
  auto settled = connect(a, {{Rank{1}, std::move(address_of_b)}});
  other.join();
  return settled;
}

/// The address of `transport` with other ones in front.
std::vector<std::byte> with_addresses_first(Transport& transport, const std::vector<SocketAddress>& first) {
  Published published = *Published::decode(transport.address());
  published.addresses.insert(published.addresses.begin(), first.begin(), first.end());
  return published.encode();
}

SocketAddress address_of(Transport& transport) { return Published::decode(transport.address())->addresses.at(0); }

std::size_t open_files() {
  DIR* folder = ::opendir("/proc/self/fd");
  std::size_t count = 0;
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

/// Drops everything that arrives at any connection of this process, as if all cables had been cut: no reset tells of
/// it.
void cut_all_cables() {
  sock_filter drop BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog filter{.len = 1, .filter = &drop};
  for (int fd = 0; fd < 1024; ++fd) {
    int protocol = 0;
    socklen_t size = sizeof protocol;
    sockaddr_storage peer{};
    socklen_t peer_size = sizeof peer;
    if (::getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0 || protocol != IPPROTO_TCP) continue;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) continue;
    ASSERT_EQ(::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter), 0);
  }
}

/// Polls for `limit`, or until the link broke. Sleeps as a waiting rank does.
bool breaks_within(Transport& transport, Nanos limit) {
  std::array<Completion, 8> out;
  for (const Deadline deadline = Deadline::after(limit); !deadline.has_passed();) {
    const std::size_t count = transport.poll(out);
    for (std::size_t i = 0; i < count; ++i) {
      if (out[i].kind == Kind::failed) return true;
    }
    if (count == 0 && transport.arm(Wake::by_sleep)) transport.sleep(10ms);
    transport.disarm();
  }
  return false;
}

TEST(Tcp, ACableThatIsCutWhileDataIsOnItsWayBreaksTheLink) {
  const Secret secret = Secret::random();
  const auto a = *create_tcp({.rank = Rank{0}, .secret = secret, .listen_on = {"127.0.0.1"}, .silence_max = 400ms});
  const auto b = make(1, secret);
  ASSERT_TRUE(connect_pair(*a, b->address(), *b)[0].endpoint);
  const std::array<std::byte, 100> message{};
  ASSERT_TRUE(a->endpoint(Rank{1})->post_message(message, {}));
  EXPECT_FALSE(breaks_within(*a, 600ms)) << "all is well: " << a->endpoint(Rank{1})->failure()->message();
  cut_all_cables();
  EXPECT_FALSE(breaks_within(*a, 600ms)) << "nothing is on its way";
  ASSERT_TRUE(a->endpoint(Rank{1})->post_message(message, {}));
  EXPECT_TRUE(breaks_within(*a, 10s));
  ASSERT_TRUE(a->endpoint(Rank{1})->failure());
  const Error error = *a->endpoint(Rank{1})->failure();
  EXPECT_EQ(error.code(), ErrorCode::peer_failed);
  EXPECT_EQ(error.peer(), Rank{1});
  EXPECT_NE(error.message().find("acknowledged nothing"), std::string::npos) << error.message();
}

TEST(Tcp, APeerThatOnlyTakesNothingIsNotSilent) {
  const Secret secret = Secret::random();
  const auto a = *create_tcp({.rank = Rank{0}, .secret = secret, .listen_on = {"127.0.0.1"}, .silence_max = 400ms});
  const auto b = make(1, secret);
  ASSERT_TRUE(connect_pair(*a, b->address(), *b)[0].endpoint);
  const std::vector<std::byte> message(kEagerLimit);
  while (*a->endpoint(Rank{1})->post_message(message, {}) == Posted::started) {
  }
  EXPECT_FALSE(breaks_within(*a, 1500ms)) << a->endpoint(Rank{1})->failure()->message();
}

TEST(Tcp, AnAddressThatLeadsToAnotherRankIsDropped) {
  const Secret secret = Secret::random();
  const auto a = make(0, secret);
  const auto b = make(1, secret);
  const auto wrong = make(2, secret);
  // The wrong one answers calls meanwhile, as a rank that waits for its own peers does.
  std::thread other([&] { (void)connect(*wrong, {{Rank{0}, a->address()}}, 1s); });
  const auto settled = connect_pair(*a, with_addresses_first(*b, {address_of(*wrong)}), *b);
  other.join();
  ASSERT_TRUE(settled[0].endpoint) << settled[0].endpoint.error().message();
  EXPECT_NE((*settled[0].endpoint)->describe().find(address_of(*b).text()), std::string::npos);
}

TEST(Tcp, AnAddressThatLeadsToTheCallerItselfIsDropped) {
  const Secret secret = Secret::random();
  const auto a = make(0, secret);
  const auto b = make(1, secret);
  const auto settled = connect_pair(*a, with_addresses_first(*b, {address_of(*a)}), *b);
  EXPECT_TRUE(settled[0].endpoint);
}

TEST(Tcp, ASilentListenerCostsAMomentOnly) {
  const Secret secret = Secret::random();
  const auto a = make(0, secret, 2);
  const auto b = make(1, secret, 3);
  const auto silent = listen_on(*SocketAddress::parse("127.0.0.1", 0));
  const Nanos begin = steady_clock().now();
  const auto settled = connect_pair(*a, with_addresses_first(*b, {SocketAddress::local_of(silent->get())}), *b);
  ASSERT_TRUE(settled[0].endpoint);
  EXPECT_LT(steady_clock().now() - begin, 5s);
  EXPECT_NE((*settled[0].endpoint)->describe().find("2 streams"), std::string::npos) << "the lower wish counts";
}

TEST(Tcp, AnErrorNamesEveryAddressAndWhatHappened) {
  const Secret secret = Secret::random();
  const auto a = make(0, secret);
  auto b = make(1, secret);
  const auto second = *SocketAddress::parse("127.0.0.2", 9);
  const std::string first_text = address_of(*b).text();
  const auto address = with_addresses_first(*b, {second});
  b.reset();
  const auto settled = connect(*a, {{Rank{1}, address}});
  ASSERT_FALSE(settled[0].endpoint);
  const Error error = settled[0].endpoint.error();
  EXPECT_EQ(error.peer(), Rank{1});
  EXPECT_NE(error.message().find(first_text), std::string::npos) << error.message();
  EXPECT_NE(error.message().find("127.0.0.2:9"), std::string::npos) << error.message();
  EXPECT_NE(error.message().find("refused"), std::string::npos) << error.message();
}

TEST(Tcp, APeerThatDoesNotCallIsATimeoutThatNamesIt) {
  const Secret secret = Secret::random();
  const auto a = make(0, secret);
  const auto b = make(1, secret);
  const auto settled = connect(*b, {{Rank{0}, a->address()}}, 50ms);
  EXPECT_EQ(settled[0].endpoint.error().code(), ErrorCode::timeout);
  EXPECT_EQ(settled[0].endpoint.error().peer(), Rank{0});
}

TEST(Tcp, AnotherSecretDoesNotConnect) {
  const auto a = make(0, Secret::random());
  const auto b = make(1, Secret::random());
  std::thread other([&] {
    const auto settled = connect(*b, {{Rank{0}, a->address()}}, 1s);
    EXPECT_FALSE(settled[0].endpoint);
  });
  const auto settled = connect(*a, {{Rank{1}, b->address()}}, 1s);
  other.join();
  ASSERT_FALSE(settled[0].endpoint);
  EXPECT_EQ(a->endpoint(Rank{1}), nullptr);
}

TEST(Tcp, StrangersDoNotDelayPeers) {
  const Secret secret = Secret::random();
  const auto a = make(0, secret);
  const auto b = make(1, secret);
  std::vector<Fd> strangers;
  for (int i = 0; i < 100; ++i) {
    auto stranger = start_connect(address_of(*b), 0);
    ASSERT_TRUE(stranger);
    if (i % 2 == 0) (void)!::send(stranger->get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
    strangers.push_back(std::move(*stranger));
  }
  const Nanos begin = steady_clock().now();
  EXPECT_TRUE(connect_pair(*a, b->address(), *b)[0].endpoint);
  EXPECT_LT(steady_clock().now() - begin, 5s);
}

TEST(Tcp, AddressesOfStrangersAreChecked) {
  const auto a = make(0, Secret::random());
  auto good = a->address();
  const auto attempt = [&](std::vector<std::byte> bytes) {
    return connect(*a, {{Rank{1}, std::move(bytes)}}, 100ms)[0].endpoint.error().code();
  };
  EXPECT_EQ(attempt({}), ErrorCode::unsupported);
  for (std::size_t size = 4; size < good.size(); ++size) {
    EXPECT_EQ(attempt({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}), ErrorCode::malformed) << size;
  }
  good.push_back(std::byte{0});
  EXPECT_EQ(attempt(good), ErrorCode::malformed);
}

TEST(Tcp, ItListensOnTheGivenAddressOnly) {
  const auto a = make(0, Secret::random());
  auto elsewhere = start_connect(*SocketAddress::parse("127.0.0.2", address_of(*a).port()), 0);
  if (elsewhere) {
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(take_socket_error(elsewhere->get()), ECONNREFUSED);
  }
  const Secret secret;
  EXPECT_EQ(create_tcp({.rank = {}, .secret = secret, .listen_on = {}}).error().code(), ErrorCode::invalid_argument);
  EXPECT_EQ(create_tcp({.rank = {}, .secret = secret, .listen_on = {"localhost"}}).error().code(),
            ErrorCode::malformed);
  EXPECT_EQ(create_tcp({.rank = {}, .secret = secret, .listen_on = {"192.0.2.1"}}).error().code(),
            ErrorCode::not_found);
  EXPECT_EQ(create_tcp({.rank = {}, .secret = secret, .listen_on = {"127.0.0.1"}, .streams = 0}).error().code(),
            ErrorCode::invalid_argument);
}

TEST(Tcp, DescriptorsAreGivenBackAndTheirLimitIsAClearError) {
  const std::size_t before = open_files();
  for (int i = 0; i < 10; ++i) {
    const Secret secret = Secret::random();
    const auto a = make(0, secret, 4);
    const auto b = make(1, secret, 4);
    ASSERT_TRUE(connect_pair(*a, b->address(), *b)[0].endpoint);
    EXPECT_GE(open_files(), before + 8);
  }
  EXPECT_EQ(open_files(), before);
  const Status status = check_descriptors(std::size_t{1} << 40);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::limit_exceeded);
  EXPECT_NE(status.error().message().find("ulimit -n 10995"), std::string::npos) << status.error().message();
}

TEST(Tcp, TheSoftLimitOfDescriptorsIsRaised) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit low{.rlim_cur = 64, .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  (void)make(0, Secret::random());
  rlimit after{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, limit.rlim_max);
}

TEST(Tcp, WhatWasPostedArrivesThoughTheSenderLeavesAtOnce) {
  const Secret secret = Secret::random();
  auto a = make(0, secret, 2);
  const auto b = make(1, secret, 2);
  ASSERT_TRUE(connect_pair(*a, b->address(), *b)[0].endpoint);
  constexpr std::size_t kSize = 48 << 20;
  std::vector<std::byte> source(kSize, std::byte{3});
  std::vector<std::byte> destination(kSize);
  const auto from = a->register_memory(source.data(), kSize, device::MemoryKind::host);
  const auto to = b->register_memory(destination.data(), kSize, device::MemoryKind::host);
  // Input that the leaving side never reads must not turn into a reset.
  ASSERT_TRUE(b->endpoint(Rank{0})->post_message(std::array<std::byte, 100>{}, {}));
  Endpoint& link = *a->endpoint(Rank{1});
  ASSERT_TRUE(link.post_write({&*from, 0, kSize}, {to->key, 0, kSize}, 5, Token{1}));
  ASSERT_TRUE(link.post_message(std::array<std::byte, 64>{}, {}));
  link.close();
  std::thread leaving([&] { a.reset(); });
  std::this_thread::sleep_for(200ms);
  std::vector<Kind> kinds;
  const Deadline deadline = Deadline::after(20s);
  while ((kinds.empty() || kinds.back() != Kind::closed) && !deadline.has_passed()) {
    std::array<Completion, 4> out;
    for (const Completion& done : std::span(out).first(b->poll(out))) kinds.push_back(done.kind);
  }
  leaving.join();
  std::ranges::sort(kinds);
  EXPECT_EQ(kinds, (std::vector{Kind::message, Kind::notice, Kind::closed}));
  EXPECT_EQ(source, destination);
}

TEST(Tcp, ManyPeersAreWatchedTogether) {
  constexpr std::uint32_t kRanks = 8;
  const Secret secret = Secret::random();
  std::vector<std::unique_ptr<Transport>> transports;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) transports.push_back(make(rank, secret));
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      Transport& mine = *transports[rank];
      std::vector<PeerAddress> peers;
      for (std::uint32_t peer = 0; peer < kRanks; ++peer) {
        if (peer != rank) peers.push_back({Rank{peer}, transports[peer]->address()});
      }
      for (const Connected& one : mine.connect(peers, Deadline::after(20s))) ASSERT_TRUE(one.endpoint);
      std::size_t arrived = 0;
      std::uint32_t round = 0;
      constexpr std::uint32_t kRounds = 200;
      while (arrived < kRounds * (kRanks - 1)) {
        if (round < kRounds && arrived >= round * (kRanks - 1)) {
          for (const PeerAddress& peer : peers) {
            const auto posted = mine.endpoint(peer.peer)->post_message(std::as_bytes(std::span(&round, 1)), {});
            ASSERT_EQ(*posted, Posted::started);
          }
          ++round;
        }
        std::array<Completion, 3> out;
        const std::size_t got = mine.poll(out);
        arrived += got;
        if (got == 0 && mine.arm(Wake::by_sleep)) {
          const Deadline limit = Deadline::after(5s);
          mine.sleep(5s);
          mine.disarm();
          ASSERT_FALSE(limit.has_passed()) << "not woken";
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace weft::transport::tcp
