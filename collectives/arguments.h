#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "collectives/contract.h"
#include "device/types.h"

namespace weft::collectives {

/// A call as a user makes it.
struct UserCall {
  Collective collective = Collective::all_reduce;
  const void* send = nullptr;
  void* receive = nullptr;
  std::uint64_t count = 0;
  device::DataType type = device::DataType::u8;
  device::ReduceOp op = device::ReduceOp::sum;
  std::uint32_t root = 0;

  friend bool operator==(const UserCall&, const UserCall&) = default;
};

/// The contract that the call asks for on rank `own` of `ranks`, with the placement its buffers have there.
/// Errors: invalid_argument — a null or misaligned buffer, an overlap that is not in place, an unknown root, type or
/// op;
///         out_of_range — the buffers would exceed the address space.
Result<Contract> contract_of(const UserCall& call, Rank own, RankCount ranks);

}  // namespace weft::collectives
