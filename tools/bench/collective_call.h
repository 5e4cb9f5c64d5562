#pragma once

#include <weft/weft.h>

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "collectives/contract.h"
#include "device/types.h"
#include "tools/bench/options.h"
#include "tools/bench/pattern.h"

namespace weft::tools {

/// A rank's memory for the messages of a run: one range to send from, one to receive into.
class BenchMemory {
 public:
  /// Errors: limit_exceeded — there is not so much memory.
  static Result<BenchMemory> create(Memory kind, std::uint64_t size_bytes);
  BenchMemory(BenchMemory&& other) noexcept;
  BenchMemory& operator=(BenchMemory&&) = delete;
  ~BenchMemory();
  [[nodiscard]] std::byte* send() const noexcept { return send_; }
  [[nodiscard]] std::byte* receive() const noexcept { return receive_; }

 private:
  BenchMemory(Memory kind, std::byte* send, std::byte* receive) : kind_(kind), send_(send), receive_(receive) {}
  Memory kind_;
  std::byte* send_;
  std::byte* receive_;
};

/// One collective call that can be repeated and checked.
class CollectiveCall {
 public:
  struct Spec {
    collectives::Collective collective = collectives::Collective::all_reduce;
    collectives::Placement placement = collectives::Placement::out_of_place;
    std::uint64_t count = 0;  ///< Of one block.
    device::DataType type = device::DataType::f32;
    device::ReduceOp op = device::ReduceOp::sum;
    std::uint32_t root = 0;
  };
  /// `memory` holds message_bytes() twice and outlives it.
  CollectiveCall(weft_communicator_t* communicator, const BenchMemory& memory, const Spec& call);

  /// Writes the inputs, and into the outputs what is no result.
  void prepare();
  /// Blocking.
  weft_status_t run() const noexcept;
  /// Elements of this rank's output that are wrong, after prepare() and one run().
  [[nodiscard]] std::uint64_t count_wrong() const;

 private:
  weft_communicator_t* communicator_;
  Spec call_;
  std::uint32_t rank_;
  std::uint32_t ranks_;
  collectives::Contract contract_;
  Pattern pattern_;
  std::byte* send_ = nullptr;  ///< Null where this rank has none; the same for the next.
  std::byte* receive_ = nullptr;
};

}  // namespace weft::tools
