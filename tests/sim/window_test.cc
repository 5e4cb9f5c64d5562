// One-sided puts over every kind of link.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/fakes/known_device.h"
#include "tests/sim/link_kinds.h"
#include "tests/sim/sim_call.h"

namespace weft::test {
namespace {

using collectives::engine::RequestId;

constexpr std::size_t kWindowBytes = 4096;

/// Where the windows are, where the sources are.
class Windows : public testing::TestWithParam<std::tuple<int, Where, Where>> {
 protected:
  static constexpr std::uint32_t kRanks = 3;

  Windows() {
    transport::sim::SimOptions options = options_of(kLinkKinds[std::get<0>(GetParam())], kRanks, 17);
    group_ = std::make_unique<SimGroup>(options, 512, 3);
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      memory_.push_back(std::make_unique<SimBuffer>(*group_, rank, gpu_, std::get<1>(GetParam()), kWindowBytes));
      EXPECT_TRUE(group_->engine(rank).open_window(0, memory_[rank]->data(), kWindowBytes));
    }
    for (std::uint32_t target = 0; target < kRanks; ++target) {
      for (std::uint32_t source = 0; source < kRanks; ++source) {
        auto remote = group_->engine(target).window_for(0, Rank{source});
        EXPECT_TRUE(remote);
        group_->engine(source).set_remote_window(0, Rank{target}, *remote);
      }
    }
  }

  void close_all() {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) group_->engine(rank).start_closing_window(0);
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      ASSERT_TRUE(group_->run_until([&] { return group_->engine(rank).is_window_quiet(0); }));
      group_->engine(rank).close_window(0);
    }
  }

  std::unique_ptr<SimBuffer> source(std::uint32_t rank, std::size_t size_bytes, int value) {
    auto made = std::make_unique<SimBuffer>(*group_, rank, gpu_, std::get<2>(GetParam()), size_bytes);
    made->write(std::vector<std::byte>(size_bytes, static_cast<std::byte>(value)));
    return made;
  }

  fakes::FakeGpu gpu_;
  fakes::KnownDevice known_{gpu_};
  std::unique_ptr<SimGroup> group_;
  std::vector<std::unique_ptr<SimBuffer>> memory_;
};

TEST_P(Windows, APutIsThereOnceItsSignalIs) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{150}, std::size_t{3000}}) {
    for (std::uint32_t from = 0; from < kRanks; ++from) {
      for (std::uint32_t to = 0; to < kRanks; ++to) {
        SCOPED_TRACE(std::to_string(size) + " bytes, " + std::to_string(from) + " -> " + std::to_string(to));
        const int value = static_cast<int>(size + 16 * from + to);
        const auto bytes = source(from, size, value);
        auto request = group_->engine(from).start_put(0, bytes->data(), size, Rank{to}, 64, true);
        ASSERT_TRUE(request) << request.error().message();
        ASSERT_TRUE(group_->run_until([&] {
          return group_->engine(from).is_finished(*request) && group_->engine(to).signals(0, Rank{from}) == 1;
        }));
        EXPECT_TRUE(group_->engine(from).collect(*request));
        group_->engine(to).take_signals(0, Rank{from}, 1);
        const auto got = memory_[to]->read();
        for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(got[64 + i], static_cast<std::byte>(value)) << i;
        EXPECT_NE(got[63], static_cast<std::byte>(value));
      }
    }
  }
  close_all();
}

TEST_P(Windows, AreQuietOnlyWhenPutsWithoutSignalsHaveArrived) {
  const auto large = source(0, 3000, 7);
  const auto small = source(2, 100, 9);
  auto first = group_->engine(0).start_put(0, large->data(), 3000, Rank{1}, 0, false);
  auto second = group_->engine(2).start_put(0, small->data(), 100, Rank{1}, 3000, false);
  ASSERT_TRUE(first && second);
  ASSERT_TRUE(group_->run_until(
      [&] { return group_->engine(0).is_finished(*first) && group_->engine(2).is_finished(*second); }));
  close_all();
  const auto got = memory_[1]->read();
  for (std::size_t i = 0; i < 3100; ++i) ASSERT_EQ(got[i], static_cast<std::byte>(i < 3000 ? 7 : 9)) << i;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) EXPECT_FALSE(group_->engine(rank).failure());
  EXPECT_EQ(group_->engine(1).num_in_flight(), 0U);
}

TEST_P(Windows, CountSignalsInTheOrderOfThePuts) {
  // Small and large ones in turns, and pure signals: some wait for room where others would find it.
  constexpr std::uint32_t kPuts = 40;
  std::vector<std::unique_ptr<SimBuffer>> sources;
  std::vector<RequestId> requests;
  std::vector<std::uint64_t> offsets{0};
  for (std::uint32_t i = 0; i < kPuts; ++i) {
    const std::size_t size = i % 4 == 1 ? 280 : (i % 4 == 3 ? 0 : 40);
    sources.push_back(source(0, size, static_cast<int>(i) + 1));
    auto request = group_->engine(0).start_put(0, sources[i]->data(), size, Rank{1}, offsets[i], true);
    ASSERT_TRUE(request) << request.error().message();
    requests.push_back(*request);
    offsets.push_back(offsets[i] + size);
  }
  std::uint64_t seen = 0;
  EXPECT_TRUE(group_->run_until([&] {
    const std::uint64_t now = group_->engine(1).signals(0, Rank{0});
    if (now == seen) return now == kPuts;
    seen = now;
    const auto got = memory_[1]->read();
    for (std::uint64_t i = 0; i < now; ++i) {
      for (std::uint64_t at = offsets[i]; at < offsets[i + 1]; ++at) {
        if (got[at] != static_cast<std::byte>(i + 1)) {
          ADD_FAILURE() << now << " signals, but put " << i << " is not there";
          return true;
        }
      }
    }
    return now == kPuts;
  }));
  EXPECT_EQ(seen, kPuts);
  for (const RequestId request : requests) {
    ASSERT_TRUE(group_->run_until([&] { return group_->engine(0).is_finished(request); }));
    EXPECT_TRUE(group_->engine(0).collect(request));
  }
  group_->engine(1).take_signals(0, Rank{0}, kPuts);
  close_all();
}

TEST_P(Windows, RefusePutsThatLeaveThem) {
  const auto bytes = source(0, 100, 1);
  for (const auto& [size, offset] :
       {std::pair{std::size_t{100}, std::uint64_t{kWindowBytes - 99}},
        std::pair{std::size_t{1}, std::uint64_t{kWindowBytes}}, std::pair{std::size_t{100}, ~std::uint64_t{0} - 50}}) {
    for (std::uint32_t to = 0; to < kRanks; ++to) {
      auto request = group_->engine(0).start_put(0, bytes->data(), size, Rank{to}, offset, true);
      ASSERT_FALSE(request);
      EXPECT_EQ(request.error().code(), ErrorCode::out_of_range);
    }
  }
  auto request = group_->engine(0).start_put(5, bytes->data(), 1, Rank{1}, 0, true);
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().code(), ErrorCode::invalid_argument);
  close_all();
}

std::string name_of_case(const testing::TestParamInfo<std::tuple<int, Where, Where>>& test) {
  constexpr const char* kNames[] = {"plain", "allocated", "device"};
  const auto [kind, into, from] = test.param;
  return std::string(kLinkKinds[kind].name) + "_into_" + kNames[static_cast<int>(into)] + "_from_" +
         kNames[static_cast<int>(from)];
}

INSTANTIATE_TEST_SUITE_P(Links, Windows,
                         testing::Combine(testing::Range(0, kNumLinkKinds),
                                          testing::Values(Where::plain, Where::allocated, Where::device),
                                          testing::Values(Where::plain, Where::device)),
                         name_of_case);

}  // namespace
}  // namespace weft::test
