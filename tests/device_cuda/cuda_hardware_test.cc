// Runs on a real GPU; skips, saying why, where there is none. scripts/gpu_checks.sh runs it.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "device/cuda/cuda_device.h"
#include "device/devices.h"
#include "device/host/kernels.h"

namespace weft::device::cuda {
namespace {

class CudaHardware : public testing::Test {
 protected:
  void SetUp() override {
    const auto device = use_cuda_device(0);
    if (!device) GTEST_SKIP() << device.error().message();
    device_ = *device;
  }
  void wait(Ticket ticket) {
    while (!device_->is_done(ticket)) {
    }
  }
  std::byte* upload(const std::vector<std::byte>& bytes) {
    const auto memory = device_->allocate(bytes.size());
    EXPECT_TRUE(memory) << memory.error().message();
    wait(device_->copy(*memory, bytes.data(), bytes.size()));
    return *memory;
  }
  std::vector<std::byte> download(const std::byte* memory, std::size_t size) {
    std::vector<std::byte> bytes(size);
    wait(device_->copy(bytes.data(), memory, size));
    return bytes;
  }

  CudaDevice* device_ = nullptr;
};

std::vector<std::byte> random_bytes(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  Random random{seed};
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
  return bytes;
}

TEST_F(CudaHardware, CopiesAndOwns) {
  const auto bytes = random_bytes((std::size_t{8} << 20) + 13, 1);
  std::byte* const memory = upload(bytes);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 256, 0u);
  EXPECT_TRUE(device_->owns(memory + bytes.size() - 1));
  EXPECT_FALSE(device_->owns(bytes.data()));
  EXPECT_EQ(&device_of(memory), device_);
  EXPECT_EQ(&device_of(bytes.data()), &host_device());
  EXPECT_TRUE(download(memory, bytes.size()) == bytes);
  device_->release(memory);
}

TEST_F(CudaHardware, AllocatesZeros) {
  std::byte* const memory = *device_->allocate(100001);
  EXPECT_TRUE(download(memory, 100001) == std::vector<std::byte>(100001));
  device_->release(memory);
}

TEST_F(CudaHardware, PinsHostMemory) {
  std::vector<std::byte> host(1 << 20, std::byte{5});
  ASSERT_TRUE(device_->register_host(host.data(), host.size()));
  std::byte* const memory = upload(host);
  EXPECT_TRUE(download(memory, host.size()) == host);
  device_->release(memory);
  device_->release_host(host.data());
}

/// The host kernels are held to a scalar oracle elsewhere; random bits hold NaN, infinities and subnormals.
TEST_F(CudaHardware, ReducesWithTheBitsOfTheHost) {
  if (!kernel_image().empty()) {
    EXPECT_TRUE(device_->has_kernels()) << "the driver refused the kernels";
  }
  for (std::size_t t = 0; t < kDataTypes; ++t) {
    const auto type = static_cast<DataType>(t);
    for (const std::size_t count : {1, 255, 257, 1000003}) {
      const std::size_t size = count * size_of(type);
      const auto left = random_bytes(size, 3 + t), right = random_bytes(size, 50 + t);
      std::byte* const a = upload(left);
      std::byte* const b = upload(right);
      std::byte* const d = *device_->allocate(size);
      for (std::size_t o = 0; o < kReduceOps; ++o) {
        const auto op = static_cast<ReduceOp>(o);
        std::vector<std::byte> wanted(size);
        reduce_function(type, op)(wanted.data(), left.data(), right.data(), count);
        wait(device_->reduce(d, a, b, count, type, op));
        EXPECT_TRUE(download(d, size) == wanted) << name_of(type) << " " << name_of(op) << " " << count;
        divide(wanted.data(), count, type, 7);
        wait(device_->finish_average(d, count, type, 7));
        EXPECT_TRUE(download(d, size) == wanted) << name_of(type) << " divided " << count;
      }
      // Received on the host, into the device: through the host.
      std::vector<std::byte> wanted(size);
      reduce_function(type, ReduceOp::sum)(wanted.data(), left.data(), right.data(), count);
      wait(device_->reduce(a, a, right.data(), count, type, ReduceOp::sum));
      EXPECT_TRUE(download(a, size) == wanted) << name_of(type) << " mixed " << count;
      for (std::byte* memory : {a, b, d}) device_->release(memory);
    }
  }
}

}  // namespace
}  // namespace weft::device::cuda
