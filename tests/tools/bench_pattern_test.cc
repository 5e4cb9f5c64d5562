#include "tools/bench/pattern.h"

#include <gtest/gtest.h>

#include <cstring>

#include "device/host/kernels.h"

namespace weft::tools {
namespace {

using device::DataType;
using device::ReduceOp;

std::vector<std::byte> input(const Pattern& pattern, DataType type, std::uint32_t rank, std::uint64_t first,
                             std::uint64_t count) {
  std::vector<std::byte> bytes(count * device::size_of(type));
  pattern.fill(bytes.data(), rank, first, count);
  return bytes;
}

class ReducedPattern : public testing::TestWithParam<std::tuple<int, int>> {};

// The reduction kernels are the judge: in rank order, and in the reverse order, they must give just what is expected.
TEST_P(ReducedPattern, IsExactInEveryOrder) {
  const auto type = static_cast<DataType>(std::get<0>(GetParam()));
  const auto op = static_cast<ReduceOp>(std::get<1>(GetParam()));
  constexpr std::uint64_t kCount = 5000;  // More than a period.
  for (const std::uint32_t ranks : {1U, 2U, 3U, 4U, 7U, 64U, 300U}) {
    const Pattern pattern{type, op, ranks};
    for (const bool is_reversed : {false, true}) {
      std::vector<std::byte> result = input(pattern, type, is_reversed ? ranks - 1 : 0, 17, kCount);
      for (std::uint32_t i = 1; i < ranks; ++i) {
        const auto next = input(pattern, type, is_reversed ? ranks - 1 - i : i, 17, kCount);
        device::reduce_function(type, op)(result.data(), result.data(), next.data(), kCount);
      }
      if (op == ReduceOp::avg) device::divide(result.data(), kCount, type, ranks);
      EXPECT_EQ(pattern.count_wrong_reduced(result.data(), 17, kCount), 0U) << ranks << " ranks";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllTypesAndOps, ReducedPattern,
                         testing::Combine(testing::Range(0, static_cast<int>(device::kDataTypes)),
                                          testing::Range(0, static_cast<int>(device::kReduceOps))),
                         [](const auto& test) {
                           return std::string{device::name_of(static_cast<DataType>(std::get<0>(test.param)))} + "_" +
                                  std::string{device::name_of(static_cast<ReduceOp>(std::get<1>(test.param)))};
                         });

TEST(Pattern, EveryWrongElementIsCounted) {
  const Pattern pattern{DataType::f32, std::nullopt, 2};
  auto bytes = input(pattern, DataType::f32, 1, 0, 10'000);
  EXPECT_EQ(pattern.count_wrong_moved(bytes.data(), 1, 0, 10'000), 0U);
  for (const std::size_t at : {std::size_t{0}, std::size_t{4093}, std::size_t{9999}}) bytes[at * 4 + 2] ^= std::byte{1};
  EXPECT_EQ(pattern.count_wrong_moved(bytes.data(), 1, 0, 10'000), 3U);
}

TEST(Pattern, ABlockOfAnotherRankOrPlaceIsWrong) {
  const Pattern pattern{DataType::f32, std::nullopt, 4};
  const auto bytes = input(pattern, DataType::f32, 2, 4096, 1000);
  EXPECT_EQ(pattern.count_wrong_moved(bytes.data(), 2, 4096, 1000), 0U);
  EXPECT_GT(pattern.count_wrong_moved(bytes.data(), 1, 4096, 1000), 990U);
  EXPECT_GT(pattern.count_wrong_moved(bytes.data(), 2, 0, 1000), 990U);
  EXPECT_GT(pattern.count_wrong_moved(bytes.data(), 2, 8192, 1000), 990U);
}

TEST(Pattern, AMissingRankIsNoticed) {
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::avg}) {
    const Pattern pattern{DataType::f32, op, 3};
    auto two = input(pattern, DataType::f32, 0, 0, 1000);
    const auto other = input(pattern, DataType::f32, 1, 0, 1000);
    device::reduce_function(DataType::f32, op)(two.data(), two.data(), other.data(), 1000);
    EXPECT_GT(pattern.count_wrong_reduced(two.data(), 0, 1000), 100U) << device::name_of(op);
  }
}

}  // namespace
}  // namespace weft::tools
