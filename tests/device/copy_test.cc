#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "device/host/kernels.h"
#include "device/host/targets.h"
#include "tests/device/guarded_buffer.h"

namespace weft::device {
namespace {

constexpr int kCanary = 0x5A;

class CopyBytes : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(host::use_kernel_target(GetParam())); }
  void TearDown() override { ASSERT_TRUE(host::use_kernel_target("")); }

  static void check(std::size_t size, std::size_t from_offset, std::size_t to_offset, Stores stores) {
    const GuardedBuffer source(size + from_offset);
    GuardedBuffer destination(size + to_offset + 64);
    std::byte* const from = from_offset == 0 ? source.last(size) : source.begin() + from_offset;
    for (std::size_t i = 0; i < size; ++i) from[i] = static_cast<std::byte>(i * 37 + (i >> 8) + from_offset);
    destination.fill(kCanary);
    std::byte* const to = destination.begin() + to_offset;
    copy_bytes(to, from, size, stores);
    ASSERT_EQ(std::memcmp(to, from, size), 0) << size << " bytes, offsets " << from_offset << ", " << to_offset;
    for (const std::byte* at = destination.begin(); at != to; ++at) ASSERT_EQ(*at, std::byte{kCanary});
    for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(to[size + i], std::byte{kCanary});
  }
};

TEST_P(CopyBytes, CopiesEverySmallSizeStreaming) {
  for (std::size_t size = 0; size <= 700; ++size) check(size, size % 3, size % 67, Stores::streaming);
}

TEST_P(CopyBytes, CopiesAtEveryMisalignment) {
  for (std::size_t offset = 0; offset < 64; ++offset)
    check(4000 + offset, (offset * 7) % 64, offset, Stores::streaming);
}

TEST_P(CopyBytes, CopiesAroundTheThreshold) {
  const std::size_t threshold = copy_streaming_threshold_bytes();
  for (const std::size_t size : {threshold - 1, threshold, threshold + 1, threshold + 4099}) {
    check(size, 5, 11, Stores::automatic);
  }
}

TEST_P(CopyBytes, AcceptsEqualRangesAndNothing) {
  std::vector<std::byte> bytes(1000, std::byte{7});
  copy_bytes(bytes.data(), bytes.data(), bytes.size(), Stores::streaming);
  copy_bytes(nullptr, nullptr, 0);
  EXPECT_EQ(bytes, std::vector<std::byte>(1000, std::byte{7}));
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, CopyBytes, testing::ValuesIn(host::kernel_targets()),
                         [](const auto& parameters) { return parameters.param; });

}  // namespace
}  // namespace weft::device
