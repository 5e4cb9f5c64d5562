#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "base/handshake.h"
#include "base/log.h"
#include "base/random.h"
#include "bootstrap/address.h"
#include "bootstrap/client.h"
#include "bootstrap/running_service.h"
#include "job_fixture.h"

namespace weft::bootstrap::testing {
namespace {

/// A plain connection to a service, as anybody on the network can open it.
class Stranger {
 public:
  explicit Stranger(const std::string& address) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name.sin_port = htons(parse_host_port(address)->port);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  }
  ~Stranger() { close(fd_); }
  Stranger(Stranger&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  Stranger& operator=(Stranger&&) = delete;

  void say(std::span<const std::byte> bytes) const {
    static_cast<void>(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }
  /// Blocks until the service says something or hangs up.
  [[nodiscard]] bool is_hung_up_on() const {
    std::array<std::byte, 512> buffer;
    while (true) {
      const ssize_t size = recv(fd_, buffer.data(), buffer.size(), 0);
      if (size <= 0) return true;
    }
  }

 private:
  int fd_;
};

std::unique_ptr<Service> start_with(const Secret& secret, std::uint32_t size, StrangerLimits limits) {
  auto service = start_service({"127.0.0.1:0", size, secret, 30s}, limits);
  EXPECT_TRUE(service) << service.error().message();
  return std::move(*service);
}

Identity identity_of_job(const Service& service, const Secret& secret, std::uint32_t rank, std::uint32_t size) {
  Identity identity;
  identity.rank = Rank{rank};
  identity.size = size;
  identity.address = service.address();
  identity.secret = secret;
  identity.source = kUniqueIdSource;
  return identity;
}

void expect_two_ranks_meet(const Service& service, const Secret& secret) {
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      auto session = join(identity_of_job(service, secret, rank, 2), settings_of());
      ASSERT_TRUE(session) << session.error().message();
      for (int round = 0; round < 20; ++round) {
        ASSERT_TRUE((*session)->barrier((*session)->world(), "met", soon()));
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(Service, SilentStrangersAreHungUpOnAtTheirDeadline) {
  const Secret secret = Secret::random();
  const auto service = start_with(secret, 2, {.deadline = 100ms, .num_max = 8});
  const Stranger silent{service->address()};
  const auto started = steady_clock().now();
  EXPECT_TRUE(silent.is_hung_up_on());
  EXPECT_GE(steady_clock().now() - started, 90ms);
  expect_two_ranks_meet(*service, secret);
}

TEST(Service, ForeignProtocolsAreHungUpOnAtOnce) {
  const Secret secret = Secret::random();
  const auto service = start_with(secret, 2, {.deadline = 20s, .num_max = 8});
  const std::string request =
      "GET /index.html HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: a port scan\r\n"
      "Accept: text/html,application/xhtml+xml\r\nConnection: keep-alive\r\n\r\n";
  const Stranger browser{service->address()};
  browser.say(bytes_of(request));
  EXPECT_TRUE(browser.is_hung_up_on());
  expect_two_ranks_meet(*service, secret);
}

TEST(Service, TheOldestStrangerMakesRoomForTheNext) {
  const Secret secret = Secret::random();
  constexpr std::size_t kRoom = 4 + 2;  // num_max and the ranks of the job.
  const auto service = start_with(secret, 2, {.deadline = 60s, .num_max = 4});
  std::vector<Stranger> strangers;
  for (std::size_t i = 0; i < 2 * kRoom; ++i) strangers.emplace_back(service->address());
  for (std::size_t i = 0; i < kRoom; ++i) EXPECT_TRUE(strangers[i].is_hung_up_on()) << i;
  expect_two_ranks_meet(*service, secret);
}

TEST(Service, AFloodOfStrangersDoesNotStopTheJob) {
  const Secret secret = Secret::random();
  const auto service = start_with(secret, 2, {.deadline = 5s, .num_max = 64});
  std::atomic<bool> is_over = false;
  std::thread flood([&] {
    Random random{17};
    std::vector<Stranger> kept;
    while (!is_over) {
      Stranger stranger{service->address()};
      std::vector<std::byte> noise(random.below(300));
      for (auto& byte : noise) byte = static_cast<std::byte>(random.next());
      if (random.happens(50)) stranger.say(noise);
      if (random.happens(50)) kept.push_back(std::move(stranger));
      if (kept.size() > 200) kept.clear();
    }
  });
  const auto started = steady_clock().now();
  expect_two_ranks_meet(*service, secret);
  EXPECT_LT(steady_clock().now() - started, 10s);
  is_over = true;
  flood.join();
  EXPECT_TRUE(service->wait_until_done(soon()));
}

TEST(Service, StrangersAreCountedAndLogged) {
  const Secret secret = Secret::random();
  const log::Level before = log::level();
  ::testing::internal::CaptureStderr();
  log::set_level(log::Level::info);
  {
    const auto service = start_with(secret, 2, {.deadline = 20ms, .num_max = 8});
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(Stranger{service->address()}.is_hung_up_on());
  }
  log::set_level(before);
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("stranger 3 from 127.0.0.1:"), std::string::npos) << text;
  EXPECT_NE(text.find("turned 3 strangers away"), std::string::npos) << text;
}

TEST(Service, AMemberThatSendsNonsenseFailsAloneAndByName) {
  const Secret secret = Secret::random();
  const auto service = start_with(secret, 2, {});
  auto address = parse_host_port(service->address());
  std::thread other([&] {
    auto session = join(identity_of_job(*service, secret, 0, 2), settings_of());
    ASSERT_TRUE(session) << session.error().message();
    const Status status = (*session)->barrier((*session)->world(), "with nonsense", soon());
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), ErrorCode::peer_failed);
    EXPECT_EQ(status.error().peer(), Rank{1});
    EXPECT_TRUE(contains(status.error(), "twice")) << status.error().message();
  });
  auto client = Client::connect(*address, secret, soon());
  ASSERT_TRUE(client) << client.error().message();
  const JoinMessage message{Rank{1}, 2, 4711, 1'000'000'000'000, "elsewhere"};
  ASSERT_TRUE((*client)->send(message, soon()));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE((*client)->receive(kOverheadSizeMax, soon()));  // Accepted, welcome.
  ASSERT_TRUE((*client)->send(message, soon()));
  other.join();
}

/// Joins as `rank`, optionally contributes to the world's first exchange, and breaks off without a word.
void join_and_die(const Service& service, const Secret& secret, std::uint32_t rank, std::uint32_t size,
                  const std::function<void()>& before_death) {
  auto client = Client::connect(*parse_host_port(service.address()), secret, soon());
  ASSERT_TRUE(client) << client.error().message();
  ASSERT_TRUE((*client)->send(JoinMessage{Rank{rank}, size, 4711, 1'000'000'000'000, "elsewhere"}, soon()));
  const auto accepted = (*client)->receive(kOverheadSizeMax, soon());
  ASSERT_TRUE(accepted && std::holds_alternative<AcceptedMessage>(*accepted));
  const auto welcome = (*client)->receive(kOverheadSizeMax, soon());
  ASSERT_TRUE(welcome && std::holds_alternative<WelcomeMessage>(*welcome));
  before_death();
}

TEST(Service, AKilledRankIsNamedAtOnceToThoseWhoWait) {
  const Secret secret = Secret::random();
  const auto service = start_with(secret, 4, {});
  std::atomic<int> num_waiting = 0;
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      auto session = join(identity_of_job(*service, secret, rank, 4), settings_of());
      ASSERT_TRUE(session) << session.error().message();
      ++num_waiting;
      const auto started = steady_clock().now();
      for (const char* phase : {"at the time", "afterwards"}) {
        const Status status = (*session)->barrier((*session)->world(), phase, soon());
        ASSERT_FALSE(status);
        EXPECT_EQ(status.error().code(), ErrorCode::peer_failed);
        EXPECT_EQ(status.error().peer(), Rank{3});
        EXPECT_TRUE(contains(status.error(), "rank 3 (host elsewhere, pid 4711) lost its connection"))
            << status.error().message();
      }
      EXPECT_LT(steady_clock().now() - started, 10s);
      // Those who are left can still work with each other.
      EXPECT_TRUE((*session)->barrier({1, {Rank{0}, Rank{1}, Rank{2}}, rank}, "the rest", soon()));
    });
  }
  join_and_die(*service, secret, 3, 4, [&] {
    while (num_waiting < 3) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(20ms);
  });
  for (auto& thread : threads) thread.join();
  const Status outcome = service->wait_until_done(soon());
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().peer(), Rank{3});
}

TEST(Service, ARankThatDiesWhileTheJobGathersEndsTheWait) {
  const Secret secret = Secret::random();
  const auto service = start_with(secret, 3, {});
  std::thread waiting([&] {
    auto session = join(identity_of_job(*service, secret, 0, 3), settings_of());
    ASSERT_FALSE(session);
    EXPECT_EQ(session.error().code(), ErrorCode::peer_failed) << session.error().message();
    EXPECT_TRUE(contains(session.error(), "rank 1 (host elsewhere, pid 4711)"));
  });
  std::this_thread::sleep_for(50ms);
  {
    auto client = Client::connect(*parse_host_port(service->address()), secret, soon());
    ASSERT_TRUE(client);
    ASSERT_TRUE((*client)->send(JoinMessage{Rank{1}, 3, 4711, 1'000'000'000'000, "elsewhere"}, soon()));
    ASSERT_TRUE((*client)->receive(kOverheadSizeMax, soon()));
  }
  waiting.join();
}

TEST(Service, EndsPromptlyWithStrangersAndMembersConnected) {
  const Secret secret = Secret::random();
  auto service = start_with(secret, 2, {});
  const Stranger silent{service->address()};
  auto client = Client::connect(*parse_host_port(service->address()), secret, soon());
  ASSERT_TRUE(client);
  ASSERT_TRUE((*client)->send(JoinMessage{Rank{1}, 2, 4711, 1'000'000'000'000, "elsewhere"}, soon()));
  ASSERT_TRUE((*client)->receive(kOverheadSizeMax, soon()));
  const auto started = steady_clock().now();
  service.reset();
  EXPECT_LT(steady_clock().now() - started, 10s);
  const auto last = (*client)->receive(kOverheadSizeMax, soon());
  ASSERT_TRUE(last);
  EXPECT_TRUE(std::holds_alternative<ClosingMessage>(*last));
}

TEST(Service, SaysWhoIsStillHere) {
  Job job{2};
  const Status nobody = job.service().wait_until_done(Deadline::after(1ms));
  ASSERT_FALSE(nobody);
  EXPECT_TRUE(contains(nobody.error(), "missing ranks 0-1; joined: nobody")) << nobody.error().message();
  job.run([&](Session& session) {
    ASSERT_TRUE(session.barrier(session.world(), "met", soon()));
    const Status here = job.service().wait_until_done(Deadline::after(1ms));
    EXPECT_FALSE(here);
    ASSERT_TRUE(session.barrier(session.world(), "asked", soon()));
  });
  EXPECT_TRUE(job.service().wait_until_done(soon()));
}

TEST(Service, WrongOptionsAreErrors) {
  EXPECT_EQ(Service::start({"127.0.0.1", 1, Secret::random(), 1s}).error().code(), ErrorCode::malformed);
  EXPECT_EQ(Service::start({"127.0.0.1:0", 0, Secret::random(), 1s}).error().code(), ErrorCode::invalid_argument);
  EXPECT_EQ(Service::start({"192.0.2.1:0", 1, Secret::random(), 1s}).error().code(), ErrorCode::not_found);
}

}  // namespace
}  // namespace weft::bootstrap::testing
