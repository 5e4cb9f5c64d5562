#include "base/random.h"

#include <array>

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Random, TheSequenceOfASeedIsTheSameOnEveryMachine) {
  // First outputs of splitmix64 for the seed 1234567, as published with the reference code.
  Random random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317ULL);
  EXPECT_EQ(random.next(), 3203168211198807973ULL);
  EXPECT_EQ(random.next(), 9817491932198370423ULL);
}

TEST(Random, StaysBelowItsBoundAndReachesEveryNumber) {
  Random random(7);
  std::array<int, 5> seen{};
  for (int i = 0; i < 5000; ++i) ++seen.at(random.below(5));
  for (const int times : seen) EXPECT_GT(times, 800);
  EXPECT_EQ(random.below(1), 0U);
}

TEST(Random, HappensAsOftenAsAsked) {
  Random random(7);
  int times = 0;
  for (int i = 0; i < 10'000; ++i) times += random.happens(30) ? 1 : 0;
  EXPECT_NEAR(times, 3000, 200);
  EXPECT_FALSE(random.happens(0));
  EXPECT_TRUE(random.happens(100));
}

TEST(SecureRandom, FillsEveryByteAndNeverRepeats) {
  std::array<std::byte, 32> first{};
  std::array<std::byte, 32> second{};
  fill_secure_random(first);
  fill_secure_random(second);
  EXPECT_NE(first, second);
  EXPECT_NE(first, (std::array<std::byte, 32>{}));
}

}  // namespace
}  // namespace weft
