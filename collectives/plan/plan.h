#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "collectives/contract.h"

namespace weft::collectives::plan {

/// The three buffers that a rank's steps may name.
enum class Buffer : std::uint8_t { input, output, scratch };

/// One chunk of one buffer of one rank. Chunk numbers count through the buffer: block b, part p of a plan with k parts
/// a block is chunk b*k + p. A scratch chunk has the size of part (chunk % k). In a plan that is in place, the shared
/// block is always named through the larger buffer (see Contract), so that two names never mean the same bytes.
struct Location {
  Rank rank;
  Buffer buffer = Buffer::input;
  std::uint32_t chunk = 0;
  friend auto operator<=>(const Location&, const Location&) = default;
};

enum class StepKind : std::uint8_t {
  send,            ///< `source` goes to `peer`.
  receive,         ///< What `peer` sends lands in `destination`.
  receive_reduce,  ///< destination = source op (what `peer` sends); source may equal destination.
  copy,            ///< destination = source.
  reduce,          ///< destination = source op second.
};

/// One step of one rank. Its accesses happen between its start and its completion.
struct Step {
  StepKind kind = StepKind::copy;
  Rank peer;                   ///< send, receive, receive_reduce.
  std::uint32_t transfer = 0;  ///< send and receive of one transfer carry the same number, unique in the plan.
  std::uint16_t lane = 0;      ///< Advice to the transport which of its streams or rails to use; it orders nothing.
  Location source;             ///< See StepKind; unused by receive.
  Location second;             ///< Only reduce.
  Location destination;        ///< Unused by send.
  std::vector<std::uint32_t> after;  ///< Steps of the same rank (by position) that complete before this one starts.
  friend bool operator==(const Step&, const Step&) = default;
};

/// A collective as a graph of steps for all ranks at once. Pure data: who made it does not matter, verify() decides.
///
/// Order: a step starts after all steps in `after` completed. The data of a receive moves after its send started and
/// after itself started; a receive completes after its data moved. A send completes after its source was read. Nothing
/// else orders anything: not the position in the list, not the lane, not the order of two transfers between the same
/// ranks.
struct Plan {
  std::string name;  ///< The algorithm's, for people.
  Contract contract;
  std::uint32_t parts_per_block = 1;  ///< k above: a block of `count` elements splits into k balanced parts.
  std::uint32_t lanes = 1;
  std::uint32_t num_transfers = 0;
  std::vector<std::uint32_t> scratch_chunks;  ///< Per rank.
  std::vector<std::vector<Step>> steps;  ///< Per rank. In a focused plan (see PlanBuilder) only one rank's are there.
  friend bool operator==(const Plan&, const Plan&) = default;
};

/// True if the step has a peer.
constexpr bool is_transfer(StepKind kind) noexcept {
  return kind == StepKind::send || kind == StepKind::receive || kind == StepKind::receive_reduce;
}

std::string_view name_of(StepKind kind) noexcept;
std::string_view name_of(Buffer buffer) noexcept;

/// A number that differs for plans that differ in anything that ranks must agree on: contract, parts, transfers
/// (number, ends, combination). It can be computed from a complete plan only. Thread: any.
std::uint64_t hash_of(const Plan& plan) noexcept;

}  // namespace weft::collectives::plan
