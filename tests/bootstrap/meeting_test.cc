#include "bootstrap/meeting.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/wire.h"
#include "bootstrap/rank_list.h"

namespace weft::bootstrap {
namespace {

using namespace std::chrono_literals;

class HandClock final : public Clock {
 public:
  [[nodiscard]] Nanos now() const noexcept override { return now_; }
  void advance(Nanos by) { now_ += by; }

 private:
  Nanos now_ = 1000s;
};

constexpr std::uint64_t kNoTimeout = ~std::uint64_t{0};

/// A meeting whose rank r uses connection r + 1.
class MeetingTest : public ::testing::Test {
 protected:
  void make(std::uint32_t size, Nanos join_timeout = 60s) {
    size_ = size;
    meeting_.emplace(Meeting::Options{size, "here:1", Deadline::after(join_timeout, clock_)}, clock_);
  }
  static ConnectionId connection(std::uint32_t rank) { return ConnectionId{rank + 1}; }
  void join(std::uint32_t rank, std::uint64_t timeout_ns = kNoTimeout) {
    meeting_->join(connection(rank), {Rank{rank}, size_, 100 + rank, timeout_ns, "h" + std::to_string(rank)});
  }
  void join_all(std::uint32_t size) {
    make(size);
    for (std::uint32_t rank = 0; rank < size; ++rank) join(rank);
    sent();
  }
  Status contribute(std::uint32_t rank, std::vector<Rank> members, ExchangeKey key = {}, std::uint64_t value = 1,
                    std::uint64_t timeout_ns = kNoTimeout) {
    ContributeMessage message;
    message.key = key;
    message.operation = Operation::agree;
    message.timeout_ns = timeout_ns;
    message.what = "phase";
    message.own_index = static_cast<std::uint32_t>(std::ranges::find(members, Rank{rank}) - members.begin());
    ByteWriter writer;
    encode_members(members, writer);
    message.members = std::move(writer).take();
    message.value = std::move(ByteWriter{}.number(value)).take();
    return meeting_->contribute(connection(rank), std::move(message));
  }
  /// What was sent since the last call, by rank.
  std::vector<std::pair<std::uint32_t, ServiceMessage>> sent() {
    std::vector<std::pair<std::uint32_t, ServiceMessage>> found;
    for (const Outgoing& outgoing : meeting_->take_output()) {
      auto message = decode_service_message(*outgoing.message);
      EXPECT_TRUE(message) << message.error().message();
      found.emplace_back(static_cast<std::uint32_t>(outgoing.to) - 1, std::move(*message));
    }
    return found;
  }

  HandClock clock_;
  std::uint32_t size_ = 0;
  std::optional<Meeting> meeting_;
};

const std::vector<Rank> kWorld{Rank{0}, Rank{1}, Rank{2}};

TEST_F(MeetingTest, EveryRankIsAcceptedAndWelcomedOnce) {
  make(3);
  for (std::uint32_t rank = 0; rank < 3; ++rank) join(rank);
  int num_accepted = 0;
  int num_welcomed = 0;
  for (const auto& [rank, message] : sent()) {
    num_accepted += std::holds_alternative<AcceptedMessage>(message) ? 1 : 0;
    num_welcomed += std::holds_alternative<WelcomeMessage>(message) ? 1 : 0;
  }
  EXPECT_EQ(num_accepted, 3);
  EXPECT_EQ(num_welcomed, 3);
  EXPECT_TRUE(meeting_->next_deadline().is_never());
}

TEST_F(MeetingTest, TheEarliestTimeoutEndsTheJoining) {
  make(4, 60s);
  join(0, kNoTimeout);
  join(2, static_cast<std::uint64_t>(Nanos(5s).count()));
  sent();
  EXPECT_EQ(meeting_->next_deadline().remaining(clock_), 5s);
  clock_.advance(5s);
  meeting_->tick();
  const auto messages = sent();
  ASSERT_EQ(messages.size(), 2U);
  const auto* refused = std::get_if<RefusedMessage>(&messages[0].second);
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->error.code(), ErrorCode::timeout);
  EXPECT_NE(refused->error.doing().find("missing ranks 1, 3"), std::string::npos) << refused->error.doing();
  EXPECT_NE(refused->error.doing().find("rank 2 (host h2, pid 102)"), std::string::npos);
  EXPECT_TRUE(meeting_->is_done());
  join(1);  // Too late: the same answer.
  const auto late = sent();
  ASSERT_EQ(late.size(), 1U);
  EXPECT_NE(std::get_if<RefusedMessage>(&late[0].second), nullptr);
}

TEST_F(MeetingTest, AnExchangeCostsOneMessageForEachRank) {
  join_all(3);
  EXPECT_TRUE(contribute(2, kWorld, {}, 7));
  EXPECT_TRUE(contribute(0, kWorld, {}, 6));
  EXPECT_TRUE(sent().empty());
  EXPECT_TRUE(contribute(1, kWorld, {}, 12));
  const auto messages = sent();
  ASSERT_EQ(messages.size(), 3U);
  for (const auto& [rank, message] : messages) {
    const auto* result = std::get_if<ResultMessage>(&message);
    ASSERT_NE(result, nullptr);
    EXPECT_EQ(ByteReader{result->body}.number<std::uint64_t>(), 4U);
  }
}

TEST_F(MeetingTest, ALeaverKeepsItsPartButADropDoesNot) {
  for (const bool is_orderly : {true, false}) {
    join_all(3);
    EXPECT_TRUE(contribute(0, kWorld));
    EXPECT_TRUE(contribute(1, kWorld));
    if (is_orderly) {
      meeting_->leave(connection(1));
      EXPECT_TRUE(sent().empty());
      EXPECT_TRUE(contribute(2, kWorld));
      for (const auto& [rank, message] : sent()) EXPECT_TRUE(std::holds_alternative<ResultMessage>(message));
    } else {
      meeting_->drop(connection(1), "test");
      const auto told = sent();
      ASSERT_EQ(told.size(), 1U);
      EXPECT_EQ(told[0].first, 0U);
      EXPECT_TRUE(contribute(2, kWorld));
      const auto late = sent();
      ASSERT_EQ(late.size(), 1U);
      const auto* failed = std::get_if<FailedMessage>(&late[0].second);
      ASSERT_NE(failed, nullptr);
      EXPECT_EQ(failed->error.peer(), Rank{1});
    }
  }
}

TEST_F(MeetingTest, ALaterExchangeWithALeaverFailsAtOnce) {
  join_all(3);
  meeting_->leave(connection(2));
  EXPECT_TRUE(contribute(0, kWorld));
  const auto messages = sent();
  ASSERT_EQ(messages.size(), 1U);
  const auto* failed = std::get_if<FailedMessage>(&messages[0].second);
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->error.code(), ErrorCode::peer_failed);
}

TEST_F(MeetingTest, ATimeoutReachesLateComersToo) {
  join_all(3);
  EXPECT_TRUE(contribute(0, kWorld, {}, 1, 1'000'000'000));
  EXPECT_TRUE(contribute(1, kWorld, {}, 1, kNoTimeout));
  clock_.advance(999ms);
  meeting_->tick();
  EXPECT_TRUE(sent().empty());
  clock_.advance(1ms);
  meeting_->tick();
  EXPECT_EQ(sent().size(), 2U);
  EXPECT_TRUE(contribute(2, kWorld));
  EXPECT_EQ(sent().size(), 1U);
  // All have come: the record is gone, and the number can be used no more than any other.
  EXPECT_TRUE(meeting_->next_deadline().is_never());
}

TEST_F(MeetingTest, DifferentGroupsUnderOneIdAreAMismatch) {
  join_all(3);
  EXPECT_TRUE(contribute(0, {Rank{0}, Rank{1}}, {4, 0}));
  EXPECT_TRUE(contribute(2, {Rank{1}, Rank{2}}, {4, 0}));
  const auto messages = sent();
  ASSERT_EQ(messages.size(), 2U);
  for (const auto& [rank, message] : messages) {
    const auto* failed = std::get_if<FailedMessage>(&message);
    ASSERT_NE(failed, nullptr);
    EXPECT_EQ(failed->error.code(), ErrorCode::mismatch);
  }
}

TEST_F(MeetingTest, ContradictionsOfAMemberAreMalformed) {
  join_all(3);
  EXPECT_FALSE(contribute(0, {Rank{0}, Rank{0}}));
  EXPECT_FALSE(contribute(0, {Rank{0}, Rank{9}}));
  EXPECT_FALSE(contribute(0, {Rank{1}, Rank{2}}, {3, 0}));
  EXPECT_TRUE(contribute(0, kWorld, {5, 0}));
  EXPECT_FALSE(contribute(0, kWorld, {5, 0}));
  make(3);
  join(0);
  EXPECT_FALSE(contribute(0, kWorld)) << "before everybody has joined";
}

TEST_F(MeetingTest, IsDoneWhenAllAreGone) {
  join_all(3);
  meeting_->leave(connection(0));
  meeting_->leave(connection(1));
  EXPECT_FALSE(meeting_->is_done());
  EXPECT_NE(meeting_->outcome().error().doing().find("rank 2 (host h2"), std::string::npos);
  meeting_->leave(connection(2));
  EXPECT_TRUE(meeting_->is_done());
  EXPECT_TRUE(meeting_->outcome());
}

TEST_F(MeetingTest, EveryContributionIsAnsweredOnceWhateverHappens) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random{seed};
    join_all(6);
    std::map<std::pair<std::uint32_t, ExchangeKey>, int> open;  // Contributions without an answer.
    std::vector<std::map<std::uint64_t, std::uint64_t>> next(6);
    std::vector<bool> is_here(6, true);
    std::vector<bool> is_waiting(6, false);
    const auto settle = [&] {
      for (const auto& [rank, message] : sent()) {
        const ExchangeKey key = std::holds_alternative<ResultMessage>(message) ? std::get<ResultMessage>(message).key
                                                                               : std::get<FailedMessage>(message).key;
        ASSERT_EQ(open.erase({rank, key}), 1U) << "seed " << seed;
        is_waiting[rank] = false;
      }
    };
    const std::vector<std::vector<Rank>> groups{{Rank{0}, Rank{1}, Rank{2}, Rank{3}, Rank{4}, Rank{5}},
                                                {Rank{0}, Rank{2}, Rank{4}},
                                                {Rank{5}, Rank{1}, Rank{3}}};
    for (int step = 0; step < 200; ++step) {
      const auto rank = static_cast<std::uint32_t>(random.below(6));
      if (!is_here[rank]) continue;
      if (random.happens(1)) {
        is_here[rank] = false;
        std::erase_if(open, [&](const auto& entry) { return entry.first.first == rank; });
        if (random.happens(50)) {
          meeting_->leave(connection(rank));
        } else {
          meeting_->drop(connection(rank), "test");
        }
      } else if (!is_waiting[rank]) {
        const std::uint64_t group = random.happens(50) ? 0 : 1 + rank % 2;
        const ExchangeKey key{group, next[rank][group]++};
        open[{rank, key}] = 1;
        is_waiting[rank] = true;
        ASSERT_TRUE(contribute(rank, groups[group], key, 1, 1'000'000'000 * (1 + random.below(100))));
      } else {
        clock_.advance(Nanos(static_cast<Nanos::rep>(random.below(3'000'000'000))));
        meeting_->tick();
      }
      settle();
    }
    clock_.advance(200s);
    meeting_->tick();
    settle();
    EXPECT_TRUE(open.empty()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace weft::bootstrap
