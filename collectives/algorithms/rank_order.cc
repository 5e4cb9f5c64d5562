#include "collectives/algorithms/rank_order.h"

#include <algorithm>
#include <vector>

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

void reduce_everyone_in_order(PlanBuilder& plan, std::uint32_t part, std::span<const Rank> members,
                              std::span<const Location> values, std::span<const Rank> receivers,
                              std::span<const Location> targets) {
  const std::size_t n = members.size();
  std::vector<std::vector<Location>> terms(receivers.size());
  std::vector<std::size_t> position(receivers.size());
  for (std::size_t i = 0; i < receivers.size(); ++i) {
    terms[i].resize(n);
    position[i] = static_cast<std::size_t>(std::ranges::find(members, receivers[i]) - members.begin());
    terms[i][position[i]] = values[position[i]];
  }
  // By distance, so that no two members start with the same receiver.
  for (std::size_t distance = 1; distance < n; ++distance) {
    for (std::size_t i = 0; i < receivers.size(); ++i) {
      const std::size_t from = (position[i] + distance) % n;
      terms[i][from] = plan.new_scratch(receivers[i], part);
      plan.transfer(values[from], terms[i][from], Combine::overwrite);
    }
  }
  for (std::size_t i = 0; i < receivers.size(); ++i) reduce_in_order(plan, receivers[i], part, terms[i], targets[i]);
}

}  // namespace weft::collectives::algorithms
