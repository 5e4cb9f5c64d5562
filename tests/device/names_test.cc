#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "device/device.h"
#include "device/host/cache_size.h"
#include "device/types.h"

namespace weft::device {
namespace {

TEST(Names, GoThereAndBack) {
  for (std::size_t i = 0; i < kDataTypes; ++i) {
    const auto type = static_cast<DataType>(i);
    EXPECT_EQ(parse_data_type(name_of(type)), type);
  }
  for (std::size_t i = 0; i < kReduceOps; ++i) {
    const auto op = static_cast<ReduceOp>(i);
    EXPECT_EQ(parse_reduce_op(name_of(op)), op);
  }
  EXPECT_EQ(name_of(DataType::bf16), "bfloat16");
  EXPECT_EQ(name_of(DataType::f16), "half");
  EXPECT_EQ(parse_data_type("f32"), DataType::f32);
  EXPECT_EQ(parse_data_type("i8"), DataType::i8);
  EXPECT_EQ(parse_data_type(""), std::nullopt);
  EXPECT_EQ(parse_data_type("Float"), std::nullopt);
  EXPECT_EQ(parse_reduce_op("mean"), std::nullopt);
  EXPECT_EQ(name_of(MemoryKind::shared), "shared");
}

/// A sysfs with the given index folders, removed at the end.
class FakeSysfs {
 public:
  FakeSysfs() {
    char name[] = "/tmp/weft_sysfs_XXXXXX";
    root_ = mkdtemp(name);
  }
  ~FakeSysfs() { std::filesystem::remove_all(root_); }
  FakeSysfs(const FakeSysfs&) = delete;
  FakeSysfs& operator=(const FakeSysfs&) = delete;
  void add(int index, const char* level, const char* type, const char* size) {
    const std::string folder = root_ + "/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/level") << level << "\n";
    std::ofstream(folder + "/type") << type << "\n";
    std::ofstream(folder + "/size") << size << "\n";
  }
  [[nodiscard]] const std::string& root() const { return root_; }

 private:
  std::string root_;
};

TEST(CacheSizes, ComeFromSysfs) {
  FakeSysfs sysfs;
  sysfs.add(0, "1", "Data", "32K");
  sysfs.add(1, "1", "Instruction", "64K");
  sysfs.add(2, "2", "Unified", "1024K");
  sysfs.add(3, "3", "Unified", "32768K");
  EXPECT_EQ(host::cache_sizes(sysfs.root()).last_level, std::size_t{32} << 20);
}

TEST(CacheSizes, DoNotBelieveNonsense) {
  FakeSysfs sysfs;
  sysfs.add(0, "3", "Unified", "99999999999999999999K");
  // Then sysconf answers, which is bounded in what follows.
  const auto thresholds = host::streaming_thresholds(host::cache_sizes(sysfs.root()));
  EXPECT_GE(thresholds.reduce_bytes, std::size_t{512} << 10);
  EXPECT_LE(thresholds.copy_bytes, std::size_t{16} << 20);
  EXPECT_EQ(host::streaming_thresholds({.last_level = std::size_t{335544320}}).copy_bytes, std::size_t{16} << 20);
  EXPECT_EQ(host::streaming_thresholds({.last_level = 1}).copy_bytes, std::size_t{1} << 20);
  EXPECT_EQ(host::streaming_thresholds({}).copy_bytes, std::size_t{4} << 20);
  EXPECT_EQ(host::streaming_thresholds({.last_level = std::size_t{32} << 20}).copy_bytes, std::size_t{8} << 20);
}

TEST(HostDevice, FinishesAtOnce) {
  Device& host = host_device();
  auto memory = host.allocate(1000);
  ASSERT_TRUE(memory);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(*memory) % 256, 0u);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ((*memory)[i], std::byte{0});
  std::int32_t values[3] = {7, -7, 1}, more[3] = {1, -1, 1};
  auto* const a = reinterpret_cast<std::byte*>(values);
  EXPECT_EQ(host.reduce(a, a, reinterpret_cast<std::byte*>(more), 3, DataType::i32, ReduceOp::avg), Ticket::done);
  EXPECT_EQ(host.finish_average(a, 3, DataType::i32, 3), Ticket::done);
  EXPECT_EQ(values[0], 2);
  EXPECT_EQ(values[1], -2);
  EXPECT_EQ(values[2], 0);
  EXPECT_EQ(host.copy(*memory, a, 12), Ticket::done);
  EXPECT_EQ(std::memcmp(*memory, values, 12), 0);
  EXPECT_TRUE(host.is_done(Ticket::done));
  EXPECT_FALSE(host.owns(*memory));
  host.release(*memory);
  const auto too_much = host.allocate(~std::size_t{0});
  ASSERT_FALSE(too_much);
  EXPECT_EQ(too_much.error().code(), ErrorCode::limit_exceeded);
}

}  // namespace
}  // namespace weft::device
