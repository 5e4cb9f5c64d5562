#include "collectives/plan/plan.h"

#include <initializer_list>

namespace weft::collectives::plan {
namespace {

/// Mixes numbers into one; the order of the arguments counts.
/// Source: the finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
std::uint64_t mix(std::initializer_list<std::uint64_t> values) noexcept {
  std::uint64_t state = 0x243f6a8885a308d3ULL;
  for (const std::uint64_t value : values) {
    state = (state ^ value) + 0x9e3779b97f4a7c15ULL;
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ULL;
    state = (state ^ (state >> 27)) * 0x94d049bb133111ebULL;
    state ^= state >> 31;
  }
  return state;
}

}  // namespace

std::string_view name_of(StepKind kind) noexcept {
  switch (kind) {
    case StepKind::send: return "send";
    case StepKind::receive: return "receive";
    case StepKind::receive_reduce: return "receive_reduce";
    case StepKind::copy: return "copy";
    case StepKind::reduce: return "reduce";
  }
  return "unknown";
}

std::string_view name_of(Buffer buffer) noexcept {
  switch (buffer) {
    case Buffer::input: return "input";
    case Buffer::output: return "output";
    case Buffer::scratch: return "scratch";
  }
  return "unknown";
}

std::uint64_t hash_of(const Plan& plan) noexcept {
  const Contract& contract = plan.contract;
  // A sum over the ends of transfers: it must not matter in which order a rank lists its steps.
  std::uint64_t ends = 0;
  for (std::uint32_t rank = 0; rank < plan.steps.size(); ++rank) {
    for (const Step& step : plan.steps[rank]) {
      if (!is_transfer(step.kind)) continue;
      const Location& place = step.kind == StepKind::send ? step.source : step.destination;
      ends += mix({rank, static_cast<std::uint64_t>(step.kind), step.peer.value(), step.transfer, step.lane,
                   static_cast<std::uint64_t>(place.buffer), place.chunk});
    }
  }
  return mix({static_cast<std::uint64_t>(contract.collective), contract.ranks.value(), contract.root.value(),
              static_cast<std::uint64_t>(contract.placement), plan.parts_per_block, plan.lanes, plan.num_transfers,
              ends});
}

}  // namespace weft::collectives::plan
