#pragma once

#include <cstdint>
#include <string>

#include "base/ids.h"
#include "collectives/contract.h"
#include "collectives/engine/message.h"
#include "device/types.h"

namespace weft::collectives::engine {

/// What the user called: the part on which all ranks must agree, and the key of the program cache (with the placement).
struct Call {
  Contract contract;
  device::DataType type = device::DataType::u8;
  device::ReduceOp op = device::ReduceOp::sum;
  std::uint64_t count = 0;  ///< Elements a block.

  friend bool operator==(const Call&, const Call&) = default;

  /// For people: "all_reduce(count 1024, float, sum)".
  [[nodiscard]] std::string describe() const;
  /// The call as another rank is told; `plan` distinguishes algorithms and layouts.
  [[nodiscard]] CallWire to_wire(std::uint64_t plan) const noexcept;
  /// A number that differs, as good as always, where two ranks' calls differ. Placement is each rank's own affair.
  [[nodiscard]] std::uint32_t signature(std::uint64_t plan) const noexcept;
};

/// The description of what another rank called.
std::string describe(const CallWire& wire, Channel channel);

}  // namespace weft::collectives::engine
