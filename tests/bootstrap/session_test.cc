#include "bootstrap/session.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "bootstrap/frames.h"
#include "job_fixture.h"

namespace weft::bootstrap::testing {
namespace {

class Sessions : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(Sessions, ExchangeInEveryWay) {
  const std::uint32_t size = GetParam();
  Job job{size};
  job.run([&](Session& session) {
    const Group world = session.world();
    EXPECT_EQ(world.members.size(), size);
    for (int round = 0; round < 5; ++round) {
      const std::string own = std::string(session.rank().value(), 'x') + std::to_string(session.rank().value());
      const auto all = session.all_gather(world, "names", bytes_of(own), soon());
      ASSERT_TRUE(all) << all.error().message();
      ASSERT_EQ(all->size(), size);
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        EXPECT_EQ((*all)[rank], bytes_of(std::string(rank, 'x') + std::to_string(rank)));
      }
      EXPECT_TRUE(session.barrier(world, "round", soon()));
      const auto common = session.agree(world, "bits", ~(std::uint64_t{1} << session.rank().value()), soon());
      ASSERT_TRUE(common) << common.error().message();
      EXPECT_EQ(*common, ~std::uint64_t{0} << size);
    }
  });
  EXPECT_TRUE(job.service().wait_until_done(soon()));
}

INSTANTIATE_TEST_SUITE_P(Sizes, Sessions, ::testing::Values(1U, 2U, 3U, 8U, 16U));

TEST(Session, ABarrierHoldsUntilTheLastComes) {
  Job job{4};
  std::atomic<int> num_arrived = 0;
  job.run([&](Session& session) {
    if (session.rank() == Rank{2}) std::this_thread::sleep_for(50ms);
    ++num_arrived;
    ASSERT_TRUE(session.barrier(session.world(), "all here", soon()));
    EXPECT_EQ(num_arrived.load(), 4);
  });
}

TEST(Session, WhoServesPassesLastAndTheOthersAtOnce) {
  // The service of this job is in another process, so that nobody here serves.
  int address_pipe[2];
  ASSERT_EQ(::pipe(address_pipe), 0);
  const Secret secret = Secret::random();
  const auto identity_of_rank = [&](std::uint32_t rank, std::string address) {
    Identity identity;
    identity.rank = Rank{rank};
    identity.size = 3;
    identity.address = std::move(address);
    identity.secret = secret;
    identity.source = kUniqueIdSource;
    return identity;
  };
  const pid_t child = ::fork();
  if (child == 0) {
    auto service = Service::start({"127.0.0.1:0", 3, secret, 30s});
    std::array<char, 64> address{};
    service.value()->address().copy(address.data(), address.size() - 1);
    if (::write(address_pipe[1], address.data(), address.size()) != address.size()) std::_Exit(1);
    auto session = join(identity_of_rank(0, address.data()), settings_of());
    if (!session) std::_Exit(2);
    const Nanos begin = steady_clock().now();
    session.value()->pass(session.value()->world(), "created", soon());
    // Ends without a word, as a process does that calls exit: 200 ms later than its own part was done.
    std::_Exit(steady_clock().now() - begin >= 150ms ? 0 : 3);
  }
  std::array<char, 64> address{};
  ASSERT_EQ(::read(address_pipe[0], address.data(), address.size()), static_cast<ssize_t>(address.size()));
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 1; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      auto session = join(identity_of_rank(rank, address.data()), settings_of());
      ASSERT_TRUE(session) << session.error().message();
      if (rank == 2) std::this_thread::sleep_for(200ms);
      const Nanos begin = steady_clock().now();
      (*session)->pass((*session)->world(), "created", soon());
      EXPECT_LT(steady_clock().now() - begin, 150ms) << "it waits for nobody";
    });
  }
  for (auto& thread : threads) thread.join();
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(WIFEXITED(status));
  ::close(address_pipe[0]);
  ::close(address_pipe[1]);
}

TEST(Session, LargeValuesCrossInSeveralRecords) {
  Job job{3};
  job.run([](Session& session) {
    const std::vector<std::byte> own(kValueSizeMax, std::byte{static_cast<unsigned char>(session.rank().value() + 1)});
    const auto all = session.all_gather(session.world(), "large", own, soon());
    ASSERT_TRUE(all) << all.error().message();
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ((*all)[rank], std::vector<std::byte>(kValueSizeMax, std::byte{static_cast<unsigned char>(rank + 1)}));
    }
    const std::vector<std::byte> too_large(kValueSizeMax + 1);
    const auto refused = session.all_gather(session.world(), "too large", too_large, soon());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::invalid_argument);
    EXPECT_TRUE(session.barrier(session.world(), "still fine", soon()));
  });
}

TEST(Session, SubgroupsExchangeAtTheSameTime) {
  Job job{8};
  job.run([](Session& session) {
    // Odd and even ranks, the even ones in descending order; then pairs.
    const std::uint32_t own = session.rank().value();
    Group half{1 + own % 2, {}, 0};
    for (std::uint32_t i = 0; i < 4; ++i) half.members.emplace_back(own % 2 == 1 ? 2 * i + 1 : 6 - 2 * i);
    half.own_index = own % 2 == 1 ? own / 2 : (6 - own) / 2;
    Group pair{10 + own / 2, {Rank{own / 2 * 2}, Rank{own / 2 * 2 + 1}}, own % 2};
    for (int round = 0; round < 20; ++round) {
      const auto halves = session.all_gather(half, "half", bytes_of(std::to_string(own)), soon());
      ASSERT_TRUE(halves) << halves.error().message();
      for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ((*halves)[i], bytes_of(std::to_string(half.members[i].value())));
      }
      const auto pairs = session.agree(pair, "pair", own % 2 == 0 ? 6 : 3, soon());
      ASSERT_TRUE(pairs) << pairs.error().message();
      EXPECT_EQ(*pairs, 2U);
    }
  });
}

TEST(Session, ATimeoutNamesWhoIsMissingAndTheSessionLives) {
  Job job{4};
  std::atomic<int> num_failed = 0;
  job.run([&](Session& session) {
    if (session.rank() != Rank{0}) {
      const Status late =
          session.barrier(session.world(), "half-hearted", session.rank() == Rank{1} ? Deadline::after(100ms) : soon());
      ASSERT_FALSE(late);
      EXPECT_EQ(late.error().code(), ErrorCode::timeout);
      EXPECT_TRUE(contains(late.error(), "rank 0")) << late.error().message();
      EXPECT_TRUE(contains(late.error(), "half-hearted"));
      EXPECT_TRUE(contains(late.error(), "pid ")) << late.error().message();
      EXPECT_EQ(late.error().peer(), Rank{0});
      ++num_failed;
    } else {
      while (num_failed < 3 && !::testing::Test::HasFailure()) std::this_thread::sleep_for(1ms);
      // Whoever comes late gets the same answer as the others.
      const Status late = session.barrier(session.world(), "half-hearted", soon());
      ASSERT_FALSE(late);
      EXPECT_EQ(late.error().code(), ErrorCode::timeout);
    }
    EXPECT_TRUE(session.barrier(session.world(), "next", soon()));
  });
}

TEST(Session, DifferentCallsAreAMismatchThatNamesBoth) {
  Job job{2};
  job.run([](Session& session) {
    const Status status = session.rank() == Rank{0}
                              ? session.barrier(session.world(), "apples", soon())
                              : Status(session.agree(session.world(), "pears", 1, soon()).map([](auto) {}));
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), ErrorCode::mismatch);
    for (const char* part : {"apples", "pears", "barrier", "agree", "rank 0 (", "rank 1 ("}) {
      EXPECT_TRUE(contains(status.error(), part)) << part << " in " << status.error().message();
    }
  });
}

TEST(Session, OrderlyLeaversFailOnlyLaterExchanges) {
  Job job{3};
  job.run([](Session& session) {
    ASSERT_TRUE(session.barrier(session.world(), "together", soon()));
    if (session.rank() == Rank{1}) return;
    Group rest{5, {Rank{0}, Rank{2}}, session.rank().value() / 2};
    EXPECT_TRUE(session.barrier(rest, "without rank 1", soon()));
    const Status status = session.barrier(session.world(), "with rank 1", soon());
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), ErrorCode::peer_failed);
    EXPECT_EQ(status.error().peer(), Rank{1});
    EXPECT_TRUE(contains(status.error(), "left the job")) << status.error().message();
  });
}

TEST(Session, AnEndedServiceIsClosedToItsMembers) {
  Job job{2};
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<std::thread> threads;
  sessions.resize(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      auto session = join(job.identity(rank), settings_of());
      ASSERT_TRUE(session) << session.error().message();
      sessions[rank] = std::move(*session);
    });
  }
  for (auto& thread : threads) thread.join();
  std::thread waiting([&] {
    const Status status = sessions[0]->barrier(sessions[0]->world(), "never", soon());
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), ErrorCode::closed) << status.error().message();
  });
  std::this_thread::sleep_for(20ms);
  job.end_service();
  waiting.join();
  const Status status = sessions[1]->barrier(sessions[1]->world(), "never", soon());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::closed) << status.error().message();
}

TEST(Session, WrongGroupsAreRefusedHere) {
  Job job{2};
  job.run([](Session& session) {
    Group wrong = session.world();
    wrong.own_index = 1 - wrong.own_index;
    EXPECT_EQ(session.barrier(wrong, "wrong", soon()).error().code(), ErrorCode::invalid_argument);
    Group foreign{9, {session.rank(), Rank{7}}, 0};
    EXPECT_EQ(session.barrier(foreign, "foreign", soon()).error().code(), ErrorCode::invalid_argument);
    EXPECT_EQ(session.barrier(session.world(), std::string(65, 'w'), soon()).error().code(),
              ErrorCode::invalid_argument);
    EXPECT_TRUE(session.barrier(session.world(), std::string(64, 'w'), soon()));
  });
}

TEST(Session, AJobOfOneRankNeedsNoService) {
  Identity identity;
  auto session = join(identity, settings_of());
  ASSERT_TRUE(session) << session.error().message();
  const Group world = (*session)->world();
  EXPECT_EQ((*session)->all_gather(world, "alone", bytes_of("x"), soon())->at(0), bytes_of("x"));
  EXPECT_EQ(*(*session)->agree(world, "alone", 5, soon()), 5U);
  EXPECT_TRUE((*session)->barrier(world, "alone", soon()));
  EXPECT_EQ((*session)->local_address(), "127.0.0.1");
}

}  // namespace
}  // namespace weft::bootstrap::testing
