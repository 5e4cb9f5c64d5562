#include "collectives/algorithms/rank_order.h"

#include <algorithm>
#include <vector>

#include "collectives/algorithms/rounds.h"

namespace weft::collectives::algorithms {

using plan::Combine;
using plan::Location;
using plan::PlanBuilder;

void reduce_in_order(PlanBuilder& plan, Rank rank, std::uint32_t part, std::span<const Location> terms,
                     Location target) {
  if (terms.size() == 1) {
    plan.copy(terms[0], target);
    return;
  }
  Location sum = target;
  // A term that is read after the first reduction must not be where the running sum is kept.
  if (std::ranges::find(terms.subspan(2), target) != terms.end()) sum = plan.new_scratch(rank, part);
  plan.reduce(terms[0], terms[1], terms.size() == 2 ? target : sum);
  for (std::size_t i = 2; i < terms.size(); ++i) {
    plan.reduce(sum, terms[i], i + 1 == terms.size() ? target : sum);
  }
}

void reduce_everywhere_in_order(PlanBuilder& plan, std::uint32_t part, std::span<const Rank> members,
                                std::span<const Location> values, std::span<const Location> targets) {
  const auto n = static_cast<std::uint32_t>(members.size());
  std::vector<std::vector<Location>> terms(n);  // Of the members that are kept.
  for (std::uint32_t i = 0; i < n; ++i) {
    if (plan.is_kept(members[i])) terms[i].assign(values.begin(), values.end());
  }
  // By distance, so that no two members start with the same receiver.
  Rounds rounds(plan, members);
  for (std::uint32_t distance = 1; distance < n; ++distance) {
    rounds.shift(distance, [&](std::uint32_t i) {
      const std::uint32_t from = (i + distance) % n;
      const Location arrived = plan.new_scratch(members[i], part);
      plan.transfer(values[from], arrived, Combine::overwrite);
      if (!terms[i].empty()) terms[i][from] = arrived;
    });
  }
  for (std::uint32_t i = 0; i < n; ++i) {
    if (!terms[i].empty()) reduce_in_order(plan, members[i], part, terms[i], targets[i]);
  }
}

void reduce_once_in_order(PlanBuilder& plan, std::uint32_t part, std::span<const Rank> members,
                          std::span<const Location> values, Location target) {
  const std::size_t n = members.size();
  const auto position = static_cast<std::size_t>(std::ranges::find(members, target.rank) - members.begin());
  std::vector<Location> terms(values.begin(), values.end());
  for (std::size_t distance = 1; distance < n; ++distance) {
    const std::size_t from = (position + distance) % n;
    terms[from] = plan.new_scratch(target.rank, part);
    plan.transfer(values[from], terms[from], Combine::overwrite);
  }
  reduce_in_order(plan, target.rank, part, terms, target);
}

}  // namespace weft::collectives::algorithms
