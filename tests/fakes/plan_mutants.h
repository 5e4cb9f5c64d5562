#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/plan/plan.h"

namespace weft::fakes {

enum class Mutation : std::uint8_t {
  drop_edge,           ///< A step no longer waits for another.
  reverse_edge,        ///< The other waits for it instead.
  drop_step,           ///< One end of a transfer, a copy or a reduce.
  drop_transfer,       ///< Both ends.
  move_chunk,          ///< A source or destination becomes another chunk of its buffer.
  wrong_destination,   ///< What is written goes to another buffer of the rank.
  flip_combine,        ///< Overwrite becomes reduce, and the other way round.
  duplicate_transfer,  ///< It happens once more, after the first time.
  swap_peers,          ///< Two sends of a rank exchange where they go.
  redirect_operand,    ///< A reduction takes another chunk of the rank.
};
inline constexpr std::size_t kMutations = 10;
std::string_view name_of(Mutation mutation) noexcept;

/// A plan with one thing changed.
struct Mutant {
  Mutation mutation;
  std::string description;
  collectives::plan::Plan plan;

  /// True if the change does no harm, decided without verify(): no race in the closure of all events, and right numbers
  /// in one schedule per movement. Only for plans of up to some 1000 steps (see find_race()).
  [[nodiscard]] bool is_equivalent() const;
};

/// Up to `max_per_mutation` mutants of each mutation, drawn by the seed; all of them if there are not more.
std::vector<Mutant> mutants(const collectives::plan::Plan& plan, std::size_t max_per_mutation = 64,
                            std::uint64_t seed = 1);

}  // namespace weft::fakes
