#include "base/cores.h"

#include <sched.h>

#include <array>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weft {
namespace {

CoreSet cores(std::initializer_list<std::uint32_t> list) {
  CoreSet set;
  for (const std::uint32_t core : list) set.add(core);
  return set;
}

TEST(CoreSet, KnowsItsCores) {
  const CoreSet set = cores({0, 63, 64, 200, 200});
  EXPECT_EQ(set.num_cores(), 4U);
  EXPECT_TRUE(set.contains(63));
  EXPECT_TRUE(set.contains(200));
  EXPECT_FALSE(set.contains(1));
  EXPECT_FALSE(set.contains(100'000));
}

TEST(CoreSet, WordsAreOneFormForTheWire) {
  const CoreSet set = cores({1, 64});
  ASSERT_EQ(set.words().size(), 2U);
  EXPECT_EQ(set.words()[0], 2U);
  EXPECT_EQ(set.words()[1], 1U);
  EXPECT_EQ(CoreSet::from_words(set.words()), set);
  EXPECT_EQ(CoreSet::from_words(std::array<std::uint64_t, 3>{2, 1, 0}), set);
}

TEST(CoreSet, OfAThreadFollowsItsPinning) {
  const CoreSet before = CoreSet::of_this_thread();
  EXPECT_GE(before.num_cores(), 1U);
  std::thread([&before] {
    cpu_set_t one;
    CPU_ZERO(&one);
    std::uint32_t first = 0;
    while (!before.contains(first)) ++first;
    CPU_SET(first, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(CoreSet::of_this_thread(), cores({first}));
  }).join();
}

TEST(Cores, AreEnoughForAsManyRanks) {
  const CoreSet two = cores({0, 1});
  EXPECT_EQ(judge_cores(std::vector{two}), Cores::enough);
  EXPECT_EQ(judge_cores(std::vector{two, two}), Cores::enough);
  EXPECT_EQ(judge_cores(std::vector{two, two, two}), Cores::crowded);
}

TEST(Cores, PinnedRanksHaveEnoughUnlessTheyShareACore) {
  EXPECT_EQ(judge_cores(std::vector{cores({0}), cores({1})}), Cores::enough);
  EXPECT_EQ(judge_cores(std::vector{cores({0}), cores({0})}), Cores::crowded);
  EXPECT_EQ(judge_cores(std::vector{cores({0}), cores({1}), cores({0, 1})}), Cores::crowded);
  EXPECT_EQ(judge_cores(std::vector{cores({3}), cores({3}), cores({4, 5, 6, 7})}), Cores::crowded);
}

}  // namespace
}  // namespace weft
