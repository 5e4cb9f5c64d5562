#include "device/types.h"

#include <array>

namespace weft::device {
namespace {

struct TypeNames {
  std::string_view name;  ///< nccl-tests' name.
  std::string_view short_name;
};
constexpr std::array<TypeNames, kDataTypes> kTypeNames = {{
    {"int8", "i8"},
    {"uint8", "u8"},
    {"int32", "i32"},
    {"uint32", "u32"},
    {"int64", "i64"},
    {"uint64", "u64"},
    {"half", "f16"},
    {"bfloat16", "bf16"},
    {"float", "f32"},
    {"double", "f64"},
}};
constexpr std::array<std::string_view, kReduceOps> kOpNames = {"sum", "prod", "min", "max", "avg"};

}  // namespace

std::string_view name_of(DataType type) noexcept {
  const auto index = static_cast<std::size_t>(type);
  return index < kDataTypes ? kTypeNames[index].name : "unknown";
}

std::string_view name_of(ReduceOp op) noexcept {
  const auto index = static_cast<std::size_t>(op);
  return index < kReduceOps ? kOpNames[index] : "unknown";
}

std::optional<DataType> parse_data_type(std::string_view text) noexcept {
  for (std::size_t i = 0; i < kDataTypes; ++i) {
    if (text == kTypeNames[i].name || text == kTypeNames[i].short_name) return static_cast<DataType>(i);
  }
  return std::nullopt;
}

std::optional<ReduceOp> parse_reduce_op(std::string_view text) noexcept {
  for (std::size_t i = 0; i < kReduceOps; ++i) {
    if (text == kOpNames[i]) return static_cast<ReduceOp>(i);
  }
  return std::nullopt;
}

}  // namespace weft::device
