#include "base/result.h"

#include <memory>

#include <gtest/gtest.h>

namespace weft {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return Error{ErrorCode::invalid_argument, "halve an odd number"};
  return value / 2;
}

Result<int> quarter(int value) {
  WEFT_TRY_ASSIGN(const int first, half(value));
  WEFT_TRY_ASSIGN(const int second, half(first));
  return second;
}

Status check(int value, int* reached) {
  WEFT_TRY(half(value));
  ++*reached;
  return {};
}

TEST(Result, HoldsAValueOrAnError) {
  const Result<int> good = half(4);
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, 2);
  const Result<int> bad = half(3);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code(), ErrorCode::invalid_argument);
}

TEST(Result, TryAssignPassesTheValueOnOrReturnsTheError) {
  EXPECT_EQ(quarter(12).value(), 3);
  ASSERT_FALSE(quarter(6));  // The second half fails.
  EXPECT_EQ(quarter(6).error().doing(), "halve an odd number");
}

TEST(Result, TryStopsAtTheFirstError) {
  int reached = 0;
  EXPECT_TRUE(check(2, &reached));
  EXPECT_FALSE(check(1, &reached));
  EXPECT_EQ(reached, 1);
}

TEST(Result, CarriesValuesThatOnlyMove) {
  const auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(7); };
  const auto pass = [&make]() -> Result<std::unique_ptr<int>> {
    WEFT_TRY_ASSIGN(auto value, make());
    ++*value;
    return value;
  };
  const auto result = pass();
  ASSERT_TRUE(result);
  EXPECT_EQ(**result, 8);
}

TEST(Result, AStatusWithoutAnErrorIsSuccess) {
  EXPECT_TRUE(Status{});
  EXPECT_FALSE((Status{Error{ErrorCode::closed, "post"}}));
}

}  // namespace
}  // namespace weft
