#include "base/units.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace weft {
namespace {

using namespace std::chrono_literals;

TEST(Units, ReadsSizes) {
  const std::vector<std::pair<std::string, std::uint64_t>> cases{{"8", 8},
                                                                 {"0", 0},
                                                                 {"64K", 65536},
                                                                 {"64k", 65536},
                                                                 {"64KiB", 65536},
                                                                 {"64KB", 65536},
                                                                 {"1M", 1U << 20},
                                                                 {" 2G\t", 2ULL << 30},
                                                                 {"1T", 1ULL << 40},
                                                                 {"12B", 12},
                                                                 {"007", 7},
                                                                 {"1Kib", 1024},
                                                                 {"8388607T", 8388607ULL << 40},
                                                                 {"9223372036854775807", 9223372036854775807ULL}};
  for (const auto& [text, size] : cases) {
    const auto parsed = parse_bytes(text);
    ASSERT_TRUE(parsed) << text << ": " << parsed.error().message();
    EXPECT_EQ(*parsed, size) << text;
  }
}

TEST(Units, RefusesWhatIsNoSize) {
  for (const std::string text : {"", " ", "K", "-1", "+1", "1.5K", "1X", "1KK", "1 K", "iB", "1iB", "0x10", "1e3",
                                 "1K!", "\xff\xfe", "1\n2", "%n%s"}) {
    const auto parsed = parse_bytes(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code(), ErrorCode::malformed) << text;
  }
}

TEST(Units, SizesOver63BitsAreOutOfRange) {
  for (const std::string& text : std::vector<std::string>{"9223372036854775808", "8388608T", "18446744073709551616",
                                                          "99999999999999999999999K", std::string(131000, '9')}) {
    const auto parsed = parse_bytes(text);
    ASSERT_FALSE(parsed) << text.substr(0, 32);
    EXPECT_EQ(parsed.error().code(), ErrorCode::out_of_range);
    EXPECT_LT(parsed.error().message().size(), 250U) << "long values are shortened";
  }
}

TEST(Units, WritesSizesInTheShortestExactForm) {
  const std::vector<std::pair<std::uint64_t, std::string>> cases{
      {0, "0"}, {8, "8"}, {1536, "1536"}, {65536, "64K"}, {25U << 20, "25M"}, {std::uint64_t{1} << 50, "1024T"}};
  for (const auto& [size, text] : cases) EXPECT_EQ(format_bytes(size), text);
}

TEST(Units, EverySizeSurvivesBeingWritten) {
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t size = (random.next() >> 1 >> random.below(63)) << random.below(20) & ~(1ULL << 63);
    EXPECT_EQ(parse_bytes(format_bytes(size)).value(), size);
  }
}

TEST(Units, ReadsDurations) {
  const std::vector<std::pair<std::string, Nanos>> cases{{"500us", 500us},
                                                         {"20ms", 20ms},
                                                         {"1.5s", 1500ms},
                                                         {"2m", 2min},
                                                         {"1h", 1h},
                                                         {"3", 3s},
                                                         {"0", 0ns},
                                                         {"0.5", 500ms},
                                                         {".25s", 250ms},
                                                         {"7ns", 7ns},
                                                         {" 1s ", 1s},
                                                         {"inf", Nanos::max()},
                                                         {"0.0000000001s", 0ns},
                                                         {"1.9ns", 1ns},
                                                         {"1.00000000000000000000000000000000001s", 1s}};
  for (const auto& [text, duration] : cases) {
    const auto parsed = parse_duration(text);
    ASSERT_TRUE(parsed) << text << ": " << parsed.error().message();
    EXPECT_EQ(*parsed, duration) << text;
  }
}

TEST(Units, RefusesWhatIsNoDuration) {
  for (const std::string text : {"", "s", ".", "1.", "1.s", "-1s", "1 s", "1d", "1sec", "1s2", "nan", "infinity", "INF",
                                 "1e3", "1,5s", "%n%s", "\x80"}) {
    const auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code(), ErrorCode::malformed) << text;
  }
}

TEST(Units, DurationsThatDoNotFitAreOutOfRange) {
  EXPECT_EQ(parse_duration("9223372036854775806ns").value().count(), 9223372036854775806);
  for (const std::string& text : std::vector<std::string>{"9223372036854775807ns", "9223372037s", "2562048h",
                                                          "99999999999999999999", std::string(131000, '7')}) {
    const auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed) << text.substr(0, 32);
    EXPECT_EQ(parsed.error().code(), ErrorCode::out_of_range);
  }
}

TEST(Units, WritesDurationsWithThreeDigits) {
  const std::vector<std::pair<Nanos, std::string>> cases{
      {0ns, "0 ns"},       {870ns, "870 ns"},   {999ns, "999 ns"},    {1000ns, "1.00 us"},    {12300ns, "12.3 us"},
      {9996ns, "10.0 us"}, {99960ns, "100 us"}, {999499ns, "999 us"}, {999500ns, "1.00 ms"},  {4560us, "4.56 ms"},
      {1200ms, "1.20 s"},  {90s, "90.0 s"},     {2h, "7200 s"},       {-12300ns, "-12.3 us"}, {Nanos::max(), "inf"}};
  for (const auto& [duration, text] : cases) EXPECT_EQ(format_duration(duration), text);
}

}  // namespace
}  // namespace weft
