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

/// Every one of `members` sends its `values` entry to every other, and all of them reduce all of them in the order of
/// `members` into their `targets` entry. One round: everything is sent at once.
/// Shape:  values[i] and targets[i] belong to members[i]; all have the size of `part`.
/// Memory: a member needs a scratch chunk per other member, so that a target may be a value that is being sent.
void reduce_everywhere_in_order(plan::PlanBuilder& plan, std::uint32_t part, std::span<const Rank> members,
                                std::span<const plan::Location> values, std::span<const plan::Location> targets);
/// The same at one member only, the one that `target` belongs to.
void reduce_once_in_order(plan::PlanBuilder& plan, std::uint32_t part, std::span<const Rank> members,
                          std::span<const plan::Location> values, plan::Location target);

}  // namespace weft::collectives::algorithms
