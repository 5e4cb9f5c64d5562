#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"
#include "collectives/plan/builder.h"

namespace weft::collectives::algorithms {

/// Adds target = ((terms[0] op terms[1]) op terms[2]) ...; everything lies at `rank` and has the size of `part`.
/// The target may be one of the terms. One term is a copy.
/// Cost: terms - 1 local reductions, and a scratch chunk if the target is a term that would be lost.
void reduce_in_order(plan::PlanBuilder& plan, Rank rank, std::uint32_t part, std::span<const plan::Location> terms,
                     plan::Location target);

/// Every one of `members` sends its `values` entry to every one of `receivers` (members themselves), which reduce all
/// of them in the order of `members` into their `targets` entry. One round: everything is sent at once. Shape:
/// values[i] belongs to members[i], targets[i] to receivers[i]; all have the size of `part`. Memory: every receiver
/// needs a scratch chunk per other member, so that a target may be a value that is being sent.
void reduce_everyone_in_order(plan::PlanBuilder& plan, std::uint32_t part, std::span<const Rank> members,
                              std::span<const plan::Location> values, std::span<const Rank> receivers,
                              std::span<const plan::Location> targets);

}  // namespace weft::collectives::algorithms
