#include "tests/fakes/plan_mutants.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <utility>

#include "base/random.h"
#include "collectives/plan/buffers.h"
#include "collectives/plan/describe.h"
#include "tests/fakes/plan_oracle.h"

namespace weft::fakes {
namespace {

using namespace collectives;
using namespace collectives::plan;

/// One place where a mutation can be made; `index` numbers the edges of drop_edge and reverse_edge.
struct Site {
  Rank rank;
  std::uint32_t position = 0;
  std::size_t index = 0;
};

bool is_receive(StepKind kind) { return is_transfer(kind) && kind != StepKind::send; }

Step& step_at(Plan& plan, const Site& site) { return plan.steps[site.rank.index()][site.position]; }

/// Removes a step; the ones behind it move up, and nobody waits for it any more.
void remove_step(Plan& plan, Rank rank, std::uint32_t position) {
  auto& steps = plan.steps[rank.index()];
  steps.erase(steps.begin() + position);
  for (Step& step : steps) {
    std::erase(step.after, position);
    for (std::uint32_t& before : step.after) before -= before > position ? 1 : 0;
  }
}

/// The step of `rank` that is an end of the transfer.
std::uint32_t end_of(const Plan& plan, Rank rank, std::uint32_t transfer) {
  const auto& steps = plan.steps[rank.index()];
  const auto found = std::find_if(steps.begin(), steps.end(), [&](const Step& step) {
    return is_transfer(step.kind) && step.transfer == transfer;
  });
  return static_cast<std::uint32_t>(found - steps.begin());
}

/// A chunk of the buffer other than `location`, of the same size if there is one; nothing if the buffer has only one.
std::optional<Location> another_chunk(const Plan& plan, const Location& location, Buffer buffer, Random& random) {
  const std::uint64_t count = num_chunks(plan, location.rank, buffer);
  std::vector<Location> same_size;
  std::vector<Location> others;
  for (std::uint32_t chunk = 0; chunk < count; ++chunk) {
    const Location candidate{location.rank, buffer, chunk};
    if (candidate == location) continue;
    (chunk % plan.parts_per_block == location.chunk % plan.parts_per_block ? same_size : others).push_back(candidate);
  }
  auto& pool = same_size.empty() ? others : same_size;
  if (pool.empty()) return std::nullopt;
  return pool[random.below(pool.size())];
}

bool move_chunk(Plan& plan, const Site& site, Random& random) {
  Step& step = step_at(plan, site);
  const bool can_source = step.kind != StepKind::receive;
  Location& place = can_source && (step.kind == StepKind::send || random.happens(50)) ? step.source : step.destination;
  const auto moved = another_chunk(plan, place, place.buffer, random);
  if (moved) place = *moved;
  return moved.has_value();
}

bool wrong_destination(Plan& plan, const Site& site, Random& random) {
  Location& place = step_at(plan, site).destination;
  const auto other = static_cast<Buffer>((static_cast<std::uint32_t>(place.buffer) + 1 + random.below(2)) % 3);
  const auto moved = another_chunk(plan, place, other, random);
  if (moved) place = *moved;
  return moved.has_value();
}

bool flip_combine(Plan& plan, const Site& site) {
  Step& step = step_at(plan, site);
  if (step.kind == StepKind::receive) {
    step.kind = StepKind::receive_reduce;
    step.source = step.destination;
  } else {
    step.kind = StepKind::receive;
    step.source = {};
  }
  return true;
}

bool duplicate_transfer(Plan& plan, const Site& site) {
  const Step send = step_at(plan, site);
  const auto again = [&](Rank rank, std::uint32_t position) {
    auto& steps = plan.steps[rank.index()];
    Step copy = steps[position];
    copy.transfer = plan.num_transfers;
    copy.after.push_back(position);
    // Whoever waited for the first now waits for both.
    const auto added = static_cast<std::uint32_t>(steps.size());
    for (Step& step : steps) {
      if (std::count(step.after.begin(), step.after.end(), position) != 0) step.after.push_back(added);
    }
    steps.push_back(std::move(copy));
  };
  again(site.rank, site.position);
  again(send.peer, end_of(plan, send.peer, send.transfer));
  ++plan.num_transfers;
  return true;
}

bool swap_peers(Plan& plan, const Site& site, Random& random) {
  auto& steps = plan.steps[site.rank.index()];
  Step& first = steps[site.position];
  std::vector<std::uint32_t> others;
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    if (i != site.position && steps[i].kind == StepKind::send) others.push_back(i);
  }
  if (others.empty()) return false;
  Step& second = steps[others[random.below(others.size())]];
  std::swap(first.peer, second.peer);
  std::swap(first.transfer, second.transfer);
  std::swap(first.lane, second.lane);
  return true;
}

bool redirect_operand(Plan& plan, const Site& site, Random& random) {
  Step& step = step_at(plan, site);
  Location& operand = step.kind == StepKind::reduce ? step.second : step.source;
  const auto buffer = static_cast<Buffer>(random.below(3));
  const auto moved = another_chunk(plan, operand, buffer, random);
  if (moved) operand = *moved;
  return moved.has_value();
}

void reverse_edge(Plan& plan, const Site& site, bool keeps_reverse) {
  Step& step = step_at(plan, site);
  const std::uint32_t before = step.after[site.index];
  step.after.erase(step.after.begin() + static_cast<std::ptrdiff_t>(site.index));
  if (keeps_reverse) plan.steps[site.rank.index()][before].after.push_back(site.position);
}

void drop_transfer(Plan& plan, const Site& site) {
  const Step send = step_at(plan, site);
  remove_step(plan, send.peer, end_of(plan, send.peer, send.transfer));
  remove_step(plan, site.rank, site.position);
  // The last transfer takes over its number, so that none is missing.
  const std::uint32_t last = --plan.num_transfers;
  for (auto& steps : plan.steps) {
    for (Step& step : steps) {
      if (is_transfer(step.kind) && step.transfer == last) step.transfer = send.transfer;
    }
  }
}

bool applies(Mutation mutation, StepKind kind) {
  switch (mutation) {
    case Mutation::drop_transfer:
    case Mutation::duplicate_transfer:
    case Mutation::swap_peers: return kind == StepKind::send;
    case Mutation::flip_combine: return is_receive(kind);
    case Mutation::redirect_operand: return kind == StepKind::receive_reduce || kind == StepKind::reduce;
    case Mutation::wrong_destination: return writes(kind);
    default: return true;
  }
}

std::vector<Site> sites(const Plan& plan, Mutation mutation) {
  std::vector<Site> found;
  for (std::uint32_t rank = 0; rank < plan.steps.size(); ++rank) {
    for (std::uint32_t position = 0; position < plan.steps[rank].size(); ++position) {
      const Step& step = plan.steps[rank][position];
      if (!applies(mutation, step.kind)) continue;
      const bool is_of_edges = mutation == Mutation::drop_edge || mutation == Mutation::reverse_edge;
      const std::size_t count = is_of_edges ? step.after.size() : 1;
      for (std::size_t index = 0; index < count; ++index) found.push_back({Rank{rank}, position, index});
    }
  }
  return found;
}

/// False if the mutation changes nothing here.
bool mutate(Plan& plan, Mutation mutation, const Site& site, Random& random) {
  switch (mutation) {
    case Mutation::drop_edge: reverse_edge(plan, site, /*keeps_reverse=*/false); return true;
    case Mutation::reverse_edge: reverse_edge(plan, site, /*keeps_reverse=*/true); return true;
    case Mutation::drop_step: remove_step(plan, site.rank, site.position); return true;
    case Mutation::drop_transfer: drop_transfer(plan, site); return true;
    case Mutation::move_chunk: return move_chunk(plan, site, random);
    case Mutation::wrong_destination: return wrong_destination(plan, site, random);
    case Mutation::flip_combine: return flip_combine(plan, site);
    case Mutation::duplicate_transfer: return duplicate_transfer(plan, site);
    case Mutation::swap_peers: return swap_peers(plan, site, random);
    case Mutation::redirect_operand: return redirect_operand(plan, site, random);
  }
  return false;
}

}  // namespace

std::string_view name_of(Mutation mutation) noexcept {
  constexpr std::array<std::string_view, kMutations> kNames = {
      "drop_edge",         "reverse_edge", "drop_step",          "drop_transfer", "move_chunk",
      "wrong_destination", "flip_combine", "duplicate_transfer", "swap_peers",    "redirect_operand"};
  return kNames[static_cast<std::size_t>(mutation)];
}

bool Mutant::is_equivalent() const { return is_right(plan); }

std::vector<Mutant> mutants(const Plan& plan, std::size_t max_per_mutation, std::uint64_t seed) {
  std::vector<Mutant> result;
  Random random{seed};
  for (std::size_t number = 0; number < kMutations; ++number) {
    const auto mutation = static_cast<Mutation>(number);
    std::vector<Site> places = sites(plan, mutation);
    for (std::size_t made = 0; made < max_per_mutation && !places.empty();) {
      std::swap(places[random.below(places.size())], places.back());
      const Site site = places.back();
      places.pop_back();
      Mutant mutant{mutation, fmt::format("{} at {}", name_of(mutation), describe(plan, site.rank, site.position)),
                    plan};
      if (!mutate(mutant.plan, mutation, site, random)) continue;
      result.push_back(std::move(mutant));
      ++made;
    }
  }
  return result;
}

}  // namespace weft::fakes
