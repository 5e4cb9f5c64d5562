#include "tests/fakes/fake_gpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "device/devices.h"
#include "device/host/kernels.h"

namespace weft::fakes {
namespace {

using device::DataType;
using device::ReduceOp;
using device::Ticket;

std::vector<float> ramp(std::size_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}
std::byte* bytes_of(std::vector<float>& values) { return reinterpret_cast<std::byte*>(values.data()); }

TEST(FakeGpu, CrashesWhenTheCpuTouchesItsMemory) {
  FakeGpu gpu;
  std::byte* const memory = *gpu.allocate(100);
  EXPECT_DEATH(memory[0] = std::byte{1}, "");
  EXPECT_DEATH(
      {
        const volatile std::byte value = memory[50];
        std::_Exit(value == std::byte{0} ? 0 : 1);
      },
      "");
}

TEST(FakeGpu, OwnsExactlyItsLiveAllocations) {
  FakeGpu gpu;
  std::byte* const first = *gpu.allocate(100);
  std::byte* const second = *gpu.allocate(1);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 256, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second) % 256, 0u);
  EXPECT_TRUE(gpu.owns(first));
  EXPECT_TRUE(gpu.owns(first + 99));
  EXPECT_FALSE(gpu.owns(first + 100));
  EXPECT_TRUE(gpu.owns(second));
  EXPECT_FALSE(gpu.owns(second + 1));
  const std::byte on_stack{};
  EXPECT_FALSE(gpu.owns(&on_stack));
  EXPECT_FALSE(gpu.owns(nullptr));
  gpu.release(first);
  EXPECT_FALSE(gpu.owns(first));
  EXPECT_TRUE(gpu.owns(second));
  EXPECT_EQ(gpu.num_allocations(), 1u);
}

TEST(FakeGpu, HandsOutZeroedMemoryThatDoesNotOverlap) {
  FakeGpu gpu({.memory_bytes = 1 << 20});
  Random random{5};
  std::vector<std::pair<std::byte*, std::size_t>> held;
  for (int round = 0; round < 400; ++round) {
    if (!held.empty() && random.happens(45)) {
      const std::size_t at = random.below(held.size());
      gpu.release(held[at].first);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
      continue;
    }
    const std::size_t size = 1 + random.below(20000);
    const auto memory = gpu.allocate(size);
    if (!memory) {
      EXPECT_EQ(memory.error().code(), ErrorCode::limit_exceeded);
      continue;
    }
    for (const auto& [other, other_size] : held) {
      ASSERT_TRUE(*memory + size <= other || other + other_size <= *memory);
    }
    std::vector<std::byte> content(size, std::byte{9});
    gpu.download(content.data(), *memory, size);
    ASSERT_EQ(content, std::vector<std::byte>(size));
    std::fill(content.begin(), content.end(), std::byte{9});
    gpu.upload(*memory, content.data(), size);
    held.emplace_back(*memory, size);
  }
}

TEST(FakeGpu, MovesNothingBeforeTheTicketIsDone) {
  bool finished_late = false;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    FakeGpu gpu({.seed = seed});
    std::byte* const memory = *gpu.allocate(64);
    std::vector<std::byte> source(64, std::byte{1}), result(64, std::byte{7});
    gpu.upload(memory, source.data(), 64);
    const Ticket ticket = gpu.copy(result.data(), memory, 64);
    EXPECT_NE(ticket, Ticket::done);
    while (true) {
      EXPECT_EQ(result, std::vector<std::byte>(64, std::byte{7}));
      if (gpu.is_done(ticket)) break;
      finished_late = true;
    }
    EXPECT_EQ(result, source);
    EXPECT_TRUE(gpu.is_done(ticket));
    EXPECT_EQ(gpu.num_in_flight(), 0u);
  }
  EXPECT_TRUE(finished_late);
}

TEST(FakeGpu, FinishesOutOfOrder) {
  FakeGpu gpu({.seed = 3});
  std::byte* const memory = *gpu.allocate(1024);
  std::array<Ticket, 16> tickets;
  const std::vector<std::byte> source(64);
  for (std::size_t i = 0; i < tickets.size(); ++i) tickets[i] = gpu.copy(memory + 64 * i, source.data(), 64);
  std::vector<std::size_t> order;
  while (order.size() < tickets.size()) {
    for (std::size_t i = 0; i < tickets.size(); ++i) {
      const bool seen = std::find(order.begin(), order.end(), i) != order.end();
      if (!seen && gpu.is_done(tickets[i])) order.push_back(i);
    }
  }
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
}

TEST(FakeGpu, ReducesAcrossHostAndDevice) {
  constexpr std::size_t kCount = 1003;
  for (int mix = 0; mix < 8; ++mix) {
    FakeGpu gpu({.seed = static_cast<std::uint64_t>(mix) + 1});
    std::vector<float> left = ramp(kCount, 1), right = ramp(kCount, 5), result(kCount), wanted(kCount);
    for (std::size_t i = 0; i < kCount; ++i) wanted[i] = (left[i] + right[i]) / 3;
    const auto place = [&](std::vector<float>& values, bool on_device) {
      if (!on_device) return bytes_of(values);
      std::byte* const memory = *gpu.allocate(kCount * 4);
      gpu.upload(memory, values.data(), kCount * 4);
      return memory;
    };
    std::byte* const a = place(left, (mix & 1) != 0);
    std::byte* const b = place(right, (mix & 2) != 0);
    std::byte* const d = place(result, (mix & 4) != 0);
    gpu.wait(gpu.reduce(d, a, b, kCount, DataType::f32, ReduceOp::avg));
    gpu.wait(gpu.finish_average(d, kCount, DataType::f32, 3));
    if (gpu.owns(d)) gpu.download(result.data(), d, kCount * 4);
    EXPECT_EQ(result, wanted) << mix;
  }
}

TEST(FakeGpuDeath, NamesBrokenPromises) {
  FakeGpu gpu;
  std::byte* const memory = *gpu.allocate(128);
  std::vector<std::byte> host(128);
  EXPECT_DEATH((void)gpu.copy(memory + 64, host.data(), 65), "inside one live allocation");
  EXPECT_DEATH((void)gpu.is_done(Ticket{99}), "comes from this device");
  EXPECT_DEATH(gpu.release(memory + 1), "allocated here");
  const Ticket ticket = gpu.copy(memory, host.data(), 64);
  EXPECT_DEATH((void)gpu.copy(host.data() + 64, memory + 63, 2), "untouched");
  EXPECT_DEATH((void)gpu.copy(host.data(), memory + 64, 8), "untouched");
  EXPECT_DEATH(gpu.release(memory), "after the work on it is done");
  EXPECT_NE(gpu.copy(memory + 64, host.data(), 64), ticket);  // Reading the same source is no conflict.
}

TEST(Devices, FindTheOwner) {
  std::byte on_stack{};
  EXPECT_EQ(&device::device_of(&on_stack), &device::host_device());
  FakeGpu first, second({.seed = 2});
  ASSERT_TRUE(device::register_device(first));
  ASSERT_TRUE(device::register_device(second));
  const Status again = device::register_device(first);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), ErrorCode::invalid_argument);
  std::byte* const one = *first.allocate(10);
  std::byte* const two = *second.allocate(10);
  EXPECT_EQ(&device::device_of(one), &first);
  EXPECT_EQ(&device::device_of(two + 9), &second);
  EXPECT_EQ(&device::device_of(&on_stack), &device::host_device());
  EXPECT_EQ(device::kind_of(two), device::MemoryKind::device);
  EXPECT_EQ(device::kind_of(&on_stack), device::MemoryKind::host);
  device::unregister_device(first);
  EXPECT_EQ(&device::device_of(one), &device::host_device());
  EXPECT_EQ(&device::device_of(two), &second);
  device::unregister_device(second);
  device::unregister_device(second);
  EXPECT_EQ(&device::device_of(two), &device::host_device());
}

TEST(Devices, RefuseMoreThanTheirLimit) {
  std::vector<std::unique_ptr<FakeGpu>> gpus;
  for (std::size_t i = 0; i <= device::kDevicesMax; ++i) {
    gpus.push_back(std::make_unique<FakeGpu>(FakeGpu::Options{.memory_bytes = 4096}));
    const Status status = device::register_device(*gpus.back());
    if (i < device::kDevicesMax) {
      EXPECT_TRUE(status);
    } else {
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error().code(), ErrorCode::limit_exceeded);
    }
  }
  for (auto& gpu : gpus) device::unregister_device(*gpu);
}

}  // namespace
}  // namespace weft::fakes
