#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "bootstrap/address.h"
#include "bootstrap/client.h"
#include "bootstrap/session.h"
#include "job_fixture.h"

namespace weft::bootstrap::testing {
namespace {

/// A loopback port that nobody else is given: bound, not listening. A service, which sets SO_REUSEADDR as this does,
/// may listen there; the kernel chooses it for nobody.
class FreeAddress {
 public:
  FreeAddress() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    EXPECT_EQ(setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
    socklen_t size = sizeof name;
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&name), &size), 0);
    text_ = "127.0.0.1:" + std::to_string(ntohs(name.sin_port));
  }
  ~FreeAddress() { close(fd_); }
  FreeAddress(const FreeAddress&) = delete;
  FreeAddress& operator=(const FreeAddress&) = delete;

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
  std::string text_;
};

Identity identity_at(const std::string& address, const Secret& secret, std::uint32_t rank, std::uint32_t size) {
  Identity identity;
  identity.rank = Rank{rank};
  identity.size = size;
  identity.address = address;
  identity.secret = secret;
  identity.source = "WEFT_*";
  return identity;
}

TEST(Join, RankZeroServesAndTheOthersMayComeFirst) {
  const FreeAddress free;
  const std::string& address = free.text();
  const Secret secret = Secret::random();
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] {
      if (rank == 0) std::this_thread::sleep_for(100ms);
      auto session = join(identity_at(address, secret, rank, 4), settings_of());
      ASSERT_TRUE(session) << session.error().message();
      EXPECT_EQ((*session)->rank(), Rank{rank});
      EXPECT_EQ((*session)->local_address(), "127.0.0.1");
      EXPECT_TRUE((*session)->barrier((*session)->world(), "met", soon()));
      // Rank 0 leaves first, and its service ends last.
      if (rank != 0) {
        std::this_thread::sleep_for(50ms);
        EXPECT_TRUE((*session)->barrier({7, {Rank{1}, Rank{2}, Rank{3}}, rank - 1}, "without rank 0", soon()));
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(Join, RankZeroUsesAServiceOfItsJobThatIsThereAlready) {
  Job job{2};
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      Identity identity = job.identity(rank);
      identity.source = "WEFT_*";
      auto session = join(identity, settings_of());
      ASSERT_TRUE(session) << session.error().message();
      EXPECT_TRUE((*session)->barrier((*session)->world(), "met", soon()));
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(job.service().wait_until_done(soon()));
}

/// A second on an idle machine; what must not happen is that the bootstrap's timeout of two minutes is waited for.
constexpr Nanos kAtOnce = 20s;

TEST(Join, ABusyPortIsReportedAtOnceWithItsOwner) {
  Job other{2};
  const auto started = steady_clock().now();
  auto session = join(identity_at(other.service().address(), Secret::random(), 0, 2), settings_of());
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code(), ErrorCode::address_in_use);
  EXPECT_LT(steady_clock().now() - started, kAtOnce);
  const auto address = parse_host_port(other.service().address());
  EXPECT_TRUE(contains(session.error(), "port " + std::to_string(address->port)));
  EXPECT_TRUE(contains(session.error(), "(pid " + std::to_string(getpid()) + ")")) << session.error().message();
}

TEST(Join, ASilentOwnerOfThePortDoesNotDelayTheReport) {
  const FreeAddress taken;
  ASSERT_EQ(listen(taken.fd(), 8), 0);
  const auto started = steady_clock().now();
  auto session = join(identity_at(taken.text(), Secret::random(), 0, 2), settings_of());
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code(), ErrorCode::address_in_use);
  EXPECT_LT(steady_clock().now() - started, kAtOnce);
}

TEST(Join, AForeignAddressIsNotOnThisMachine) {
  // 192.0.2.0/24 is for documentation: nobody has it. The shorter timeout ends the search for a foreign service.
  auto session =
      join(identity_at("192.0.2.1:29400", Secret::random(), 0, 2), settings_of({{"WEFT_BOOTSTRAP_TIMEOUT", "100ms"}}));
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code(), ErrorCode::not_found) << session.error().message();
  EXPECT_TRUE(contains(session.error(), "192.0.2.1 is not on this machine")) << session.error().message();
}

TEST(Join, WithoutRankZeroTheTimeoutSaysSo) {
  const FreeAddress free;
  const std::string& address = free.text();
  auto session = join(identity_at(address, Secret::random(), 3, 8), settings_of({{"WEFT_BOOTSTRAP_TIMEOUT", "150ms"}}));
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code(), ErrorCode::timeout);
  for (const std::string& part : {std::string("rank 3 of 8"), address, std::string("Connection refused"),
                                  std::string("Rank 0 runs the service and never appeared")}) {
    EXPECT_TRUE(contains(session.error(), part)) << part << " in " << session.error().message();
  }
}

TEST(Join, MissingRanksAreNamedToEveryRankThatWaits) {
  Job job{9};
  std::vector<std::thread> threads;
  for (const std::uint32_t rank : {0U, 1U, 2U, 4U}) {
    threads.emplace_back([&, rank] {
      while (rank == 4) {
        const Status others = job.service().wait_until_done(Deadline::after(1ms));
        if (contains(others.error(), "missing ranks 3-8")) break;
      }
      // The first to give up ends the wait for all.
      auto session = join(job.identity(rank), settings_of({{"WEFT_BOOTSTRAP_TIMEOUT", rank == 4 ? "300ms" : "20s"}}));
      ASSERT_FALSE(session);
      EXPECT_EQ(session.error().code(), ErrorCode::timeout);
      EXPECT_TRUE(contains(session.error(), "missing ranks 3, 5-8")) << session.error().message();
      EXPECT_TRUE(contains(session.error(), "joined: rank 0 (host ")) << session.error().message();
    });
  }
  for (auto& thread : threads) thread.join();
  const Status outcome = job.service().wait_until_done(soon());
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), ErrorCode::timeout);
}

TEST(Join, RanksWithAnotherSecretAreCountedForThoseWhoWaitForThem) {
  Job job{2};
  std::thread waiting([&] {
    const auto session = join(job.identity(0), settings_of({{"WEFT_BOOTSTRAP_TIMEOUT", "1s"}}));
    ASSERT_FALSE(session);
    EXPECT_TRUE(contains(session.error(), "missing rank 1")) << session.error().message();
    EXPECT_TRUE(contains(session.error(), "2 connections were refused because they did not prove this job's secret"))
        << session.error().message();
    EXPECT_TRUE(contains(session.error(), "WEFT_SECRET")) << session.error().message();
  });
  Identity wrong = job.identity(1);
  wrong.secret = Secret::random();
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(join(wrong, settings_of()));
  waiting.join();
}

TEST(Join, ALoopbackInterfaceThatIsDownIsToBlame) {
  const Secret secret = Secret::random();
  const auto refused = [&](std::uint32_t rank, const std::string& address) {
    Identity identity;
    identity.rank = Rank{rank};
    identity.size = 2;
    identity.address = address;
    identity.secret = secret;
    const auto session = join(identity, settings_of({{"WEFT_BOOTSTRAP_TIMEOUT", "200ms"}}));
    if (session) return false;
    std::fprintf(stderr, "%s\n", session.error().message().c_str());
    return contains(session.error(), "loopback interface is down") && !contains(session.error(), "taken by") &&
           !contains(session.error(), "firewall");
  };
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) std::_Exit(77);
    auto service = Service::start({"127.0.0.1:0", 2, secret, 30s});
    if (!service) std::_Exit(1);
    if (!refused(1, (*service)->address())) std::_Exit(2);
    // Whether the service of this job has the port, nobody can ask it.
    std::_Exit(refused(0, (*service)->address()) ? 0 : 3);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "this process may not make a network of its own";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Join, AnotherSecretIsRefusedAtOnce) {
  Job job{2};
  Identity identity = job.identity(1);
  identity.secret = Secret::random();
  const auto started = steady_clock().now();
  auto session = join(identity, settings_of());
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code(), ErrorCode::unauthenticated);
  EXPECT_TRUE(contains(session.error(), job.service().address()));
  EXPECT_LT(steady_clock().now() - started, kAtOnce);
}

TEST(Join, ASecondProcessWithTheSameRankIsRefusedAndTheJobGoesOn) {
  Job job{3};
  std::atomic<int> num_refused = 0;
  std::atomic<int> num_joined = 0;
  std::vector<std::thread> threads;
  const auto start = [&](std::uint32_t rank) {
    threads.emplace_back([&, rank] {
      auto session = join(job.identity(rank), settings_of());
      if (session) {
        ++num_joined;
        EXPECT_TRUE((*session)->barrier((*session)->world(), "met", soon()));
        return;
      }
      ++num_refused;
      EXPECT_EQ(session.error().code(), ErrorCode::mismatch);
      EXPECT_TRUE(contains(session.error(), "rank 2 is taken by rank 2 (host ")) << session.error().message();
      EXPECT_TRUE(contains(session.error(), "wants it too"));
    });
  };
  start(2);
  start(2);
  while (num_refused == 0) std::this_thread::sleep_for(1ms);
  start(0);
  start(1);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(num_refused, 1);
  EXPECT_EQ(num_joined, 3);
}

TEST(Join, AnotherSizeIsRefusedWithBothValues) {
  Job job{4};
  auto first = Client::connect(*parse_host_port(job.service().address()), job.secret(), soon());
  ASSERT_TRUE(first) << first.error().message();
  ASSERT_TRUE((*first)->send(JoinMessage{Rank{0}, 4, 4711, ~std::uint64_t{0}, "elsewhere"}, soon()));
  ASSERT_TRUE((*first)->receive(kOverheadSizeMax, soon()));

  Identity identity = job.identity(1);
  identity.size = 5;
  auto session = join(identity, settings_of());
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code(), ErrorCode::mismatch);
  EXPECT_TRUE(contains(session.error(), "says that the job has 5 ranks, but rank 0 (host elsewhere, pid 4711) says 4"))
      << session.error().message();

  // The one who was refused is part of the explanation that the others get.
  auto waiting = join(job.identity(2), settings_of({{"WEFT_BOOTSTRAP_TIMEOUT", "100ms"}}));
  ASSERT_FALSE(waiting);
  EXPECT_TRUE(contains(waiting.error(), "refused meanwhile: rank 1 (")) << waiting.error().message();
}

TEST(Join, BlanksAndNamesAreAddressesToo) {
  const FreeAddress free;
  const std::string port = std::to_string(parse_host_port(free.text())->port);
  const Secret secret = Secret::random();
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const std::string address = rank == 0 ? "  127.0.0.1:" + port : "localhost:" + port + " ";
      auto session = join(identity_at(address, secret, rank, 2), settings_of());
      ASSERT_TRUE(session) << session.error().message();
      EXPECT_TRUE((*session)->barrier((*session)->world(), "met", soon()));
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(Join, AJobMayStartAgainAtTheSameAddressAtOnce) {
  const FreeAddress free;
  const std::string& address = free.text();
  for (int round = 0; round < 5; ++round) {
    const Secret secret = Secret::random();
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        auto session = join(identity_at(address, secret, rank, 2), settings_of());
        ASSERT_TRUE(session) << session.error().message();
        EXPECT_TRUE((*session)->barrier((*session)->world(), "met", soon()));
      });
    }
    for (auto& thread : threads) thread.join();
  }
}

TEST(Join, AWrongInterfaceIsAnError) {
  const auto session = join(Identity{}, settings_of({{"WEFT_INTERFACE", "=no-such-interface"}}));
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code(), ErrorCode::not_found);
  EXPECT_TRUE(contains(session.error(), "lo (")) << session.error().message();
}

}  // namespace
}  // namespace weft::bootstrap::testing
