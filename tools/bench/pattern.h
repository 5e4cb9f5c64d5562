#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "device/types.h"

namespace weft::tools {

/// Inputs whose results are known exactly, whatever the order in which ranks are combined.
///
/// Values repeat after a prime number of elements, so that a block or slice that lands in the wrong place is noticed,
/// while filling and checking cost little more than copying. For reductions they are small whole numbers (powers of two
/// for prod), such that every partial result fits the type without rounding; for moves they are random bits.
/// Thread: any.
class Pattern {
 public:
  /// `op` is nullopt for collectives that only move.
  Pattern(device::DataType type, std::optional<device::ReduceOp> op, std::uint32_t ranks);

  /// Writes elements first, first+1, ... of the input of `rank`.
  void fill(std::byte* to, std::uint32_t rank, std::uint64_t first, std::uint64_t count) const;
  /// How many of these elements are not those of the input of `rank`.
  [[nodiscard]] std::uint64_t count_wrong_moved(const std::byte* found, std::uint32_t rank, std::uint64_t first,
                                                std::uint64_t count) const;
  /// How many of these elements are not the reduction of the inputs of all ranks. `op` was given.
  [[nodiscard]] std::uint64_t count_wrong_reduced(const std::byte* found, std::uint64_t first,
                                                  std::uint64_t count) const;

 private:
  [[nodiscard]] double reduction_input(std::uint32_t rank, std::uint64_t index) const;
  [[nodiscard]] std::vector<std::byte> inputs_of(std::uint32_t rank) const;
  [[nodiscard]] std::vector<std::byte> results() const;
  [[nodiscard]] std::uint64_t count_differences(const std::byte* found, const std::vector<std::byte>& period,
                                                std::uint64_t first, std::uint64_t count) const;

  device::DataType type_;
  std::optional<device::ReduceOp> op_;
  std::uint32_t ranks_;
  std::size_t type_bytes_;
};

/// Writes `value`, which the type can hold exactly as a normal number, as an element. Integers: modulo 2^bits.
void encode(double value, device::DataType type, std::byte* to);

}  // namespace weft::tools
