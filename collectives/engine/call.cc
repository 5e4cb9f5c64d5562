#include "collectives/engine/call.h"

#include <fmt/format.h>

namespace weft::collectives::engine {

CallWire Call::to_wire(std::uint64_t plan) const noexcept {
  CallWire wire;
  wire.collective = static_cast<std::uint8_t>(contract.collective);
  wire.type = static_cast<std::uint8_t>(type);
  wire.op = reduces(contract.collective) ? static_cast<std::uint8_t>(op) : 0;
  wire.root = has_root(contract.collective) ? contract.root.value() : 0;
  wire.count = count;
  wire.plan = plan;
  return wire;
}

std::uint32_t Call::signature(std::uint64_t plan) const noexcept {
  // FNV-1a over the wire form, folded to 32 bits.
  const CallWire wire = to_wire(plan);
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const std::byte byte : bytes_of(wire)) {
    hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3ULL;
  }
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

std::string describe(const CallWire& wire, Channel channel) {
  if (wire.collective >= kCollectives || wire.type >= device::kDataTypes || wire.op >= device::kReduceOps) {
    return "something unknown to this version";
  }
  const auto collective = static_cast<Collective>(wire.collective);
  const std::string_view name = channel == Channel::collective ? name_of(collective) : "send/receive";
  std::string text =
      fmt::format("{}(count {}, {}", name, wire.count, device::name_of(static_cast<device::DataType>(wire.type)));
  if (channel != Channel::collective) return text + ")";
  if (reduces(collective)) text += fmt::format(", {}", device::name_of(static_cast<device::ReduceOp>(wire.op)));
  if (has_root(collective)) text += fmt::format(", root {}", wire.root);
  return text + ")";
}

std::string Call::describe() const { return engine::describe(to_wire(0), Channel::collective); }

}  // namespace weft::collectives::engine
