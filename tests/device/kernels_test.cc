#include "device/host/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "device/host/targets.h"
#include "tests/device/guarded_buffer.h"
#include "tests/device/oracle.h"

namespace weft::device {
namespace {

using oracle::Bits;

constexpr std::size_t kElementsMax = 600;
constexpr Stores kStores[] = {Stores::automatic, Stores::cached, Stores::streaming};
constexpr int kCanary = 0x5A;

/// Every instruction set × every type.
class Kernels : public testing::TestWithParam<std::tuple<std::string, DataType>> {
 protected:
  void SetUp() override { ASSERT_TRUE(host::use_kernel_target(std::get<0>(GetParam()))); }
  void TearDown() override { ASSERT_TRUE(host::use_kernel_target("")); }

  [[nodiscard]] static DataType type() { return std::get<1>(GetParam()); }
  [[nodiscard]] static std::size_t element() { return size_of(type()); }

  void randomize(std::byte* to, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      oracle::store(type(), to + i * element(), oracle::random_value(type(), random_));
  }

  std::vector<Bits> expected(ReduceOp op, const std::byte* left, const std::byte* right, std::size_t count) {
    std::vector<Bits> bits(count);
    for (std::size_t i = 0; i < count; ++i) {
      bits[i] = oracle::reduce(type(), op, oracle::load(type(), left + i * element()),
                               oracle::load(type(), right + i * element()));
    }
    return bits;
  }

  /// Empty if all elements are right, else what is wrong.
  static std::string difference(const std::byte* got, const std::vector<Bits>& wanted) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const Bits bits = oracle::load(type(), got + i * element());
      if (bits != wanted[i]) {
        return "element " + std::to_string(i) + " of " + std::to_string(wanted.size()) + ": got " +
               std::to_string(bits) + ", wanted " + std::to_string(wanted[i]);
      }
    }
    return {};
  }

  Random random_{17};
};

constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::prod, ReduceOp::min, ReduceOp::max, ReduceOp::avg};

TEST_P(Kernels, EqualTheOracleAtEverySizeAgainstTheGuards) {
  const GuardedBuffer left(kElementsMax * 8), right(kElementsMax * 8);
  GuardedBuffer result(kElementsMax * 8);
  for (std::size_t count = 0; count <= 300; ++count) {
    const std::size_t size = count * element();
    std::byte* const a = left.last(size);
    std::byte* const b = right.last(size);
    std::byte* const d = result.last(size);
    randomize(a, count);
    randomize(b, count);
    const ReduceOp op = kOps[count % kReduceOps];
    for (const ReduceOp each : count < 80 ? std::vector<ReduceOp>(std::begin(kOps), std::end(kOps)) : std::vector{op}) {
      const std::vector<Bits> wanted = expected(each, a, b, count);
      for (const Stores stores : kStores) {
        result.fill(kCanary);
        reduce_function(type(), each, stores)(d, a, b, count);
        ASSERT_EQ(difference(d, wanted), "") << name_of(each);
        ASSERT_TRUE(std::all_of(result.begin(), d, [](std::byte x) { return x == std::byte{kCanary}; }));
      }
    }
  }
}

TEST_P(Kernels, EqualTheOracleAtEveryMisalignment) {
  const GuardedBuffer left(kElementsMax * 8 + 128), right(kElementsMax * 8 + 128);
  GuardedBuffer result(kElementsMax * 8 + 128);
  const std::size_t positions = 64 / element();
  for (std::size_t position = 0; position < positions; ++position) {
    const std::size_t count = 280 + position;
    std::byte* const a = left.begin() + (3 * position + 1) % positions * element();
    std::byte* const b = right.begin() + (5 * position + 2) % positions * element();
    std::byte* const d = result.begin() + position * element();
    randomize(a, count);
    randomize(b, count);
    const ReduceOp op = kOps[position % 4];
    const std::vector<Bits> wanted = expected(op, a, b, count);
    for (const Stores stores : kStores) {
      result.fill(kCanary);
      reduce_function(type(), op, stores)(d, a, b, count);
      ASSERT_EQ(difference(d, wanted), "");
      ASSERT_TRUE(std::all_of(result.begin(), d, [](std::byte x) { return x == std::byte{kCanary}; }));
      ASSERT_TRUE(std::all_of(d + count * element(), result.begin() + result.size_bytes(),
                              [](std::byte x) { return x == std::byte{kCanary}; }));
    }
  }
}

TEST_P(Kernels, WorkInPlace) {
  const GuardedBuffer left(kElementsMax * 8), right(kElementsMax * 8);
  for (const ReduceOp op : kOps) {
    for (const std::size_t count : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 100, 127, 129, 255, 257, 599}) {
      for (const Stores stores : kStores) {
        std::byte* const a = left.last(count * element());
        std::byte* const b = right.last(count * element());
        randomize(a, count);
        randomize(b, count);
        std::vector<Bits> wanted = expected(op, a, b, count);
        reduce_function(type(), op, stores)(a, a, b, count);
        ASSERT_EQ(difference(a, wanted), "") << "into the left, " << name_of(op);
        wanted = expected(op, a, b, count);
        reduce_function(type(), op, stores)(b, a, b, count);
        ASSERT_EQ(difference(b, wanted), "") << "into the right, " << name_of(op);
        wanted = expected(op, a, a, count);
        reduce_function(type(), op, stores)(a, a, a, count);
        ASSERT_EQ(difference(a, wanted), "") << "all the same, " << name_of(op);
      }
    }
  }
}

TEST_P(Kernels, TakeEverySpecialValueWithEveryOtherInBothOrders) {
  const std::vector<Bits> specials = oracle::special_values(type());
  const std::size_t count = specials.size() * specials.size();
  std::vector<std::byte> a(count * element()), b(a.size()), forward(a.size()), backward(a.size());
  for (std::size_t i = 0; i < count; ++i) {
    oracle::store(type(), a.data() + i * element(), specials[i / specials.size()]);
    oracle::store(type(), b.data() + i * element(), specials[i % specials.size()]);
  }
  for (const ReduceOp op : kOps) {
    reduce_function(type(), op)(forward.data(), a.data(), b.data(), count);
    EXPECT_EQ(difference(forward.data(), expected(op, a.data(), b.data(), count)), "") << name_of(op);
    reduce_function(type(), op)(backward.data(), b.data(), a.data(), count);
    EXPECT_EQ(forward, backward) << name_of(op) << " is not commutative";
  }
}

TEST_P(Kernels, AreExhaustivelyRightForNarrowFloats) {
  if (type() != DataType::f16 && type() != DataType::bf16) return;  // The other types have too many values.
  constexpr std::size_t kCount = 65536;
  std::vector<std::byte> a(kCount * 2), b(kCount * 2), d(kCount * 2);
  for (std::size_t i = 0; i < kCount; ++i) oracle::store(type(), a.data() + 2 * i, i);
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::min, ReduceOp::max}) {
    for (int round = 0; round < 2; ++round) {
      randomize(b.data(), kCount);
      reduce_function(type(), op)(d.data(), a.data(), b.data(), kCount);
      ASSERT_EQ(difference(d.data(), expected(op, a.data(), b.data(), kCount)), "") << name_of(op);
    }
  }
}

TEST_P(Kernels, StreamLargeRangesWithTheSameBits) {
  const std::size_t count = streaming_threshold_bytes() / element() + 77;
  std::vector<std::byte> a(count * element() + 64), b(a.size()), streamed(a.size()), cached(a.size());
  for (std::size_t i = 0; i + 8 <= a.size(); i += 8) {
    const std::uint64_t x = random_.next(), y = random_.next();
    std::memcpy(a.data() + i, &x, 8);
    std::memcpy(b.data() + i, &y, 8);
  }
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::min}) {
    reduce_function(type(), op)(streamed.data() + element(), a.data() + element(), b.data(), count);
    reduce_function(type(), op, Stores::cached)(cached.data() + element(), a.data() + element(), b.data(), count);
    ASSERT_TRUE(streamed == cached);
  }
  // Cached kernels are held to the oracle above; a sample ties this size to it too.
  const std::size_t first = count - 100;
  const auto wanted = expected(ReduceOp::min, a.data() + (first + 1) * element(), b.data() + first * element(), 100);
  EXPECT_EQ(difference(streamed.data() + (first + 1) * element(), wanted), "");
}

TEST_P(Kernels, DivideAsTheOracle) {
  const GuardedBuffer buffer(kElementsMax * 8);
  for (const std::uint32_t divisor : {1u, 2u, 3u, 5u, 7u, 10u, 127u, 128u, 255u, 300u, 65537u, 4294967295u}) {
    for (const std::size_t count : {0, 1, 3, 8, 17, 64, 131, 599}) {
      std::byte* const values = buffer.last(count * element());
      randomize(values, count);
      std::vector<Bits> wanted(count);
      for (std::size_t i = 0; i < count; ++i) {
        wanted[i] = oracle::divide(type(), oracle::load(type(), values + i * element()), divisor);
      }
      divide(values, count, type(), divisor);
      ASSERT_EQ(difference(values, wanted), "") << "divisor " << divisor;
    }
  }
}

std::vector<DataType> all_types() {
  std::vector<DataType> types;
  for (std::size_t i = 0; i < kDataTypes; ++i) types.push_back(static_cast<DataType>(i));
  return types;
}
INSTANTIATE_TEST_SUITE_P(EveryTarget, Kernels,
                         testing::Combine(testing::ValuesIn(host::kernel_targets()), testing::ValuesIn(all_types())),
                         [](const auto& parameters) {
                           return std::get<0>(parameters.param) + "_" +
                                  std::string(name_of(std::get<1>(parameters.param)));
                         });

TEST(KernelTargets, AreNamedAndChosen) {
  const std::vector<std::string> targets = host::kernel_targets();
  ASSERT_FALSE(targets.empty());
  EXPECT_EQ(kernel_target(), targets.front());
  for (const std::string& target : targets) {
    EXPECT_TRUE(host::use_kernel_target(target));
    EXPECT_EQ(kernel_target(), target);
  }
  EXPECT_FALSE(host::use_kernel_target("no such instruction set"));
  EXPECT_TRUE(host::use_kernel_target(""));
  EXPECT_EQ(kernel_target(), targets.front());
}

TEST(Average, OfNarrowFloatsOverflowsInTheSumAsDocumented) {
  // CASES C02. f16: 8 contributions of 10000 sum to 80000 > 65504; the mean would be finite, the promise is inf.
  std::uint16_t sum = 0x70E2;  // 10000
  const std::uint16_t each = 0x70E2;
  auto* const bytes = reinterpret_cast<std::byte*>(&sum);
  for (int i = 1; i < 8; ++i) {
    reduce_function(DataType::f16, ReduceOp::avg)(bytes, bytes, reinterpret_cast<const std::byte*>(&each), 1);
  }
  divide(bytes, 1, DataType::f16, 8);
  EXPECT_EQ(sum, 0x7C00);
}

}  // namespace
}  // namespace weft::device
