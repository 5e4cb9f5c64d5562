#include "device/cuda/cuda_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "device/host/kernels.h"
#include "tests/fakes/fake_cuda_driver.h"

namespace weft::device::cuda {
namespace {

using fakes::fake_cuda_state;
using fakes::make_fake_cuda_driver;

constexpr std::byte kImage[4] = {};

/// With the GPU's kernels and without.
class CudaDeviceOnFake : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const DriverApi driver = make_fake_cuda_driver();
    fake_cuda_state().accepts_image = GetParam();
    auto created = CudaDevice::create(driver, 0, kImage);
    ASSERT_TRUE(created) << created.error().message();
    device_ = std::move(*created);
    ASSERT_EQ(device_->has_kernels(), GetParam());
  }
  /// Nothing is left behind in the driver.
  void TearDown() override {
    device_.reset();
    const auto& state = fake_cuda_state();
    EXPECT_EQ(state.num_allocations + state.num_pinned + state.num_registered, 0u);
    EXPECT_EQ(state.num_events + state.num_streams + state.num_contexts + state.context_depth, 0u);
  }
  int wait(Ticket ticket) {
    int polls = 0;
    while (!device_->is_done(ticket)) ++polls;
    return polls;
  }

  std::unique_ptr<CudaDevice> device_;
};

TEST_P(CudaDeviceOnFake, CopiesAsynchronouslyAndInOrder) {
  std::byte* const memory = *device_->allocate(64);
  EXPECT_EQ(device_->name(), "cuda:0 (Fake GPU)");
  std::vector<std::byte> source(64, std::byte{3}), result(64, std::byte{7});
  const Ticket up = device_->copy(memory, source.data(), 64);
  const Ticket down = device_->copy(result.data(), memory, 64);
  EXPECT_FALSE(device_->is_done(down));
  EXPECT_EQ(result[0], std::byte{7});
  EXPECT_GT(wait(down), 0);
  EXPECT_TRUE(device_->is_done(up));  // Finished before, and its event is used again below.
  EXPECT_EQ(result, source);
  for (int i = 0; i < 20; ++i) wait(device_->copy(memory, source.data(), 64));
  EXPECT_LE(fake_cuda_state().num_events, 2u);
  EXPECT_EQ(device_->copy(memory, source.data(), 0), Ticket::done);
  device_->release(memory);
}

TEST_P(CudaDeviceOnFake, OwnsWhatItAllocated) {
  std::byte* const memory = *device_->allocate(100);
  EXPECT_TRUE(device_->owns(memory));
  EXPECT_TRUE(device_->owns(memory + 99));
  EXPECT_FALSE(device_->owns(memory + 100));
  const std::byte on_stack{};
  EXPECT_FALSE(device_->owns(&on_stack));
  std::vector<std::byte> content(100, std::byte{1});
  wait(device_->copy(content.data(), memory, 100));
  EXPECT_EQ(content, std::vector<std::byte>(100));
  device_->release(memory);
  EXPECT_FALSE(device_->owns(memory));
}

TEST_P(CudaDeviceOnFake, ReducesAnyMixOfHostAndDevice) {
  // More than one piece of a reduction through the host, and a tail.
  constexpr std::size_t kCount = (std::size_t{3} << 20) / 4 + 7;
  std::vector<float> left(kCount), right(kCount), result(kCount), wanted(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    left[i] = static_cast<float>(i % 1000);
    right[i] = static_cast<float>(i % 77) - 30;
    wanted[i] = std::max(left[i], right[i]) / 3;
  }
  for (int mix = 0; mix < 8; ++mix) {
    std::vector<std::byte*> allocated;
    const auto place = [&](std::vector<float>& values, bool on_device) {
      auto* const host = reinterpret_cast<std::byte*>(values.data());
      if (!on_device) return host;
      allocated.push_back(*device_->allocate(kCount * 4));
      wait(device_->copy(allocated.back(), host, kCount * 4));
      return allocated.back();
    };
    std::byte* const a = place(left, (mix & 1) != 0);
    std::byte* const b = place(right, (mix & 2) != 0);
    std::byte* const d = place(result, (mix & 4) != 0);
    wait(device_->reduce(d, a, b, kCount, DataType::f32, ReduceOp::max));
    wait(device_->finish_average(d, kCount, DataType::f32, 3));
    if ((mix & 4) != 0) wait(device_->copy(reinterpret_cast<std::byte*>(result.data()), d, kCount * 4));
    ASSERT_TRUE(result == wanted) << mix;
    std::fill(result.begin(), result.end(), 0.0f);
    for (std::byte* memory : allocated) device_->release(memory);
  }
  EXPECT_EQ(fake_cuda_state().num_launches, GetParam() ? 5u : 0u);  // One reduction and four divisions.
}

TEST_P(CudaDeviceOnFake, LaunchesTheKernelOfEveryTypeAndOperation) {
  constexpr std::size_t kCount = 300;
  for (std::size_t t = 0; t < kDataTypes; ++t) {
    for (std::size_t o = 0; o < kReduceOps; ++o) {
      const auto type = static_cast<DataType>(t);
      const auto op = static_cast<ReduceOp>(o);
      const std::size_t size = kCount * size_of(type);
      std::vector<std::byte> values(size), wanted(size), got(size);
      for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<std::byte>(i * 7 + t);
      reduce_function(type, op)(wanted.data(), values.data(), values.data(), kCount);
      divide(wanted.data(), kCount, type, 3);
      std::byte* const memory = *device_->allocate(size);
      wait(device_->copy(memory, values.data(), size));
      wait(device_->reduce(memory, memory, memory, kCount, type, op));
      wait(device_->finish_average(memory, kCount, type, 3));
      wait(device_->copy(got.data(), memory, size));
      EXPECT_EQ(got, wanted) << name_of(type) << " " << name_of(op);
      device_->release(memory);
    }
  }
}

TEST_P(CudaDeviceOnFake, ReportsWhatTheDriverRefuses) {
  const auto memory = device_->allocate(std::size_t{1} << 40);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().code(), ErrorCode::limit_exceeded);
  EXPECT_NE(memory.error().message().find("cuda:0"), std::string::npos);
  std::vector<std::byte> host(100);
  EXPECT_EQ(device_->register_host(host.data(), std::size_t{1} << 40).error().code(), ErrorCode::limit_exceeded);
  ASSERT_TRUE(device_->register_host(host.data(), host.size()));
  EXPECT_EQ(fake_cuda_state().num_registered, 1u);
  device_->release_host(host.data());
}

TEST_P(CudaDeviceOnFake, NamesADeadGpu) {
  std::vector<std::byte> host(100);
  const Ticket ticket = device_->copy(host.data(), host.data() + 50, 50);
  EXPECT_DEATH(
      {
        fake_cuda_state().broken_result = 700;
        (void)device_->is_done(ticket);
      },
      "a GPU in use keeps working");
  wait(ticket);
}

INSTANTIATE_TEST_SUITE_P(Kernels, CudaDeviceOnFake, testing::Bool(),
                         [](const auto& parameters) { return parameters.param ? "OnTheGpu" : "ThroughTheHost"; });

TEST(CudaDevice, RefusesAnOrdinalThatIsNotThere) {
  const DriverApi driver = make_fake_cuda_driver();
  for (const int ordinal : {1, -1, 99}) {
    const auto device = CudaDevice::create(driver, ordinal, {});
    ASSERT_FALSE(device);
    EXPECT_EQ(device.error().code(), ErrorCode::not_found);
    EXPECT_NE(device.error().message().find("CUDA_VISIBLE_DEVICES"), std::string::npos);
  }
  EXPECT_EQ(fake_cuda_state().num_contexts, 0u);
}

TEST(CudaDriver, ThatIsMissingIsAnErrorWithARemedy) {
  const auto driver = load_driver("libweft_no_such_driver.so.1");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code(), ErrorCode::unsupported);
  EXPECT_FALSE(driver.error().remedy().empty());
  // A library that is no driver: the first missing function is named.
  const auto other = load_driver("libm.so.6");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().doing().find(" in libm.so.6"), std::string::npos) << other.error().message();
}

}  // namespace
}  // namespace weft::device::cuda
