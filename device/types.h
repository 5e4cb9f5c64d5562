#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weft::device {

/// Element types. The numbers are those of weft_type_t and of the wire; never renumber.
enum class DataType : std::uint8_t { i8 = 0, u8, i32, u32, i64, u64, f16, bf16, f32, f64 };
inline constexpr std::size_t kDataTypes = 10;

/// Reductions. avg divides the sum by the number of contributions once, at the end.
/// The numbers are those of weft_op_t and of the wire; never renumber.
enum class ReduceOp : std::uint8_t { sum = 0, prod, min, max, avg };
inline constexpr std::size_t kReduceOps = 5;

/// Size of one element in bytes.
constexpr std::size_t size_of(DataType type) noexcept {
  constexpr std::size_t kSizes[kDataTypes] = {1, 1, 4, 4, 8, 8, 2, 2, 4, 8};
  return kSizes[static_cast<std::size_t>(type)];
}

/// nccl-tests' names: "float", "bfloat16", "int8", ... Thread: any.
std::string_view name_of(DataType type) noexcept;
std::string_view name_of(ReduceOp op) noexcept;
/// The inverse; also accepts the short forms "f32", "bf16", "i8", ...
std::optional<DataType> parse_data_type(std::string_view text) noexcept;
std::optional<ReduceOp> parse_reduce_op(std::string_view text) noexcept;

}  // namespace weft::device
