#include "device/host/kernels.h"

#include <hwy/highway.h>
#include <hwy/targets.h>

#include <array>
#include <cstring>

#include "base/check.h"
#include "device/host/cache_size.h"
#include "device/host/families.h"
#include "device/host/targets.h"

namespace weft::device {
namespace host {

std::size_t streaming_threshold = 0;

namespace {

struct Table {
  std::array<std::array<Variants, kReduceOps>, kDataTypes> reduce{};
  std::array<DivideFunction, kDataTypes> divide{};
  CopyFunction stream = nullptr;
  std::size_t copy_threshold = 0;
  const char* target = "";
};

std::int64_t targets_in_use() { return hwy::SupportedTargets() & HWY_TARGETS; }

Table make_table() {
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  Table table;
  // In the order of DataType.
  const std::array<TypeKernels, kDataTypes> types = {i8_kernels(),  u8_kernels(),  i32_kernels(), u32_kernels(),
                                                     i64_kernels(), u64_kernels(), f16_kernels(), bf16_kernels(),
                                                     f32_kernels(), f64_kernels()};
  for (std::size_t i = 0; i < kDataTypes; ++i) {
    table.reduce[i] = {types[i].sum, types[i].prod, types[i].min, types[i].max, types[i].sum};
    table.divide[i] = types[i].divide;
  }
  table.stream = streaming_copy();
  const StreamingThresholds thresholds = streaming_thresholds(cache_sizes());
  streaming_threshold = thresholds.reduce_bytes;
  table.copy_threshold = thresholds.copy_bytes;
  const std::int64_t targets = targets_in_use();
  table.target = hwy::TargetName(targets & ~(targets - 1));  // The lowest bit is the best.
  return table;
}

Table& table() noexcept {
  static Table made = make_table();
  return made;
}

}  // namespace

std::vector<std::string> kernel_targets() {
  std::vector<std::string> names;
  for (std::int64_t targets = targets_in_use(); targets != 0; targets &= targets - 1) {
    names.emplace_back(hwy::TargetName(targets & ~(targets - 1)));
  }
  return names;
}

bool use_kernel_target(const std::string& name) {
  hwy::SetSupportedTargetsForTest(0);
  std::int64_t wanted = 0;
  for (std::int64_t targets = targets_in_use(); targets != 0 && !name.empty(); targets &= targets - 1) {
    const std::int64_t target = targets & ~(targets - 1);
    if (name == hwy::TargetName(target)) wanted = target;
  }
  hwy::SetSupportedTargetsForTest(wanted);
  table() = make_table();
  return wanted != 0 || name.empty();
}

}  // namespace host

ReduceFunction reduce_function(DataType type, ReduceOp op, Stores stores) noexcept {
  return host::table()
      .reduce[static_cast<std::size_t>(type)][static_cast<std::size_t>(op)][static_cast<std::size_t>(stores)];
}

void copy_bytes(std::byte* destination, const std::byte* source, std::size_t size_bytes, Stores stores) noexcept {
  if (size_bytes == 0 || destination == source) return;
  const bool streams =
      stores == Stores::automatic ? size_bytes >= copy_streaming_threshold_bytes() : stores == Stores::streaming;
  if (streams) {
    host::table().stream(destination, source, size_bytes);
  } else {
    std::memcpy(destination, source, size_bytes);
  }
}

void divide(std::byte* values, std::size_t count, DataType type, std::uint32_t divisor) noexcept {
  WEFT_CHECK(divisor > 0, "an average is over at least one contribution");
  host::table().divide[static_cast<std::size_t>(type)](values, count, divisor);
}

const char* kernel_target() noexcept { return host::table().target; }

std::size_t streaming_threshold_bytes() noexcept {
  host::table();  // Sets it.
  return host::streaming_threshold;
}
std::size_t copy_streaming_threshold_bytes() noexcept { return host::table().copy_threshold; }

}  // namespace weft::device
