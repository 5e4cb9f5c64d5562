#include <vector>

#include "collectives/algorithms/fold.h"
#include "collectives/algorithms/line.h"
#include "collectives/algorithms/registered.h"

namespace weft::collectives::algorithms {
namespace {

using plan::Combine;
using plan::Location;
using plan::Plan;
using plan::PlanBuilder;

/// Where a rank's running value lies before and after each of `updates` updates.
///
/// A value is sent while its successor is made, so that two neighbours in the list are never the same place: a receive
/// that waited for its own rank's send to complete would wait for the peer, which waits the same way.
std::vector<Location> places_of_value(PlanBuilder& plan, Rank rank, std::uint32_t updates) {
  const Location input = plan.input(rank, 0, 0);
  const Location output = plan.output(rank, 0, 0);
  std::vector<Location> places{input};
  if (updates == 0) return places;
  const Location scratch = updates > 1 || input == output ? plan.new_scratch(rank, 0) : output;
  for (std::uint32_t i = 1; i <= updates; ++i) places.push_back((updates - i) % 2 == 0 ? output : scratch);
  if (places[1] == input) places[1] = updates == 1 ? scratch : plan.new_scratch(rank, 0);
  return places;
}

/// Exchanges the whole running value with partners at distance 1, 2, 4 ...: also barrier, over no elements.
///
/// Shape:  every rank ends with the reduction over ranks. Both ends of an exchange compute the same expression up to
/// the
///         order of its two operands, so that the bits are the same everywhere.
/// Cost:   log2(n) rounds of the whole buffer, two more unless n is a power of two; one or two buffers of scratch.
/// Source: Thakur, Rabenseifner & Gropp, IJHPCA 2005.
Result<Plan> all_reduce(const Request& request) {
  const Line line(request.shape);
  const Fold fold(line);
  PlanBuilder plan = start(request, kRecursiveDoubling);

  std::vector<std::vector<Location>> places;
  std::vector<std::size_t> at(fold.num_workers(), 0);
  for (std::uint32_t i = 0; i < fold.num_workers(); ++i) {
    const std::uint32_t updates = fold.num_rounds() + (fold.extra(i) ? 1 : 0);
    places.push_back(places_of_value(plan, fold.worker(i), updates));
  }
  for (std::uint32_t i = 0; i < fold.num_workers(); ++i) {
    if (!fold.extra(i)) continue;
    plan.transfer(plan.input(*fold.extra(i), 0, 0), places[i][1], Combine::reduce, places[i][0]);
    at[i] = 1;
  }
  for (std::uint32_t distance = 1; distance < fold.num_workers(); distance *= 2) {
    for (std::uint32_t i = 0; i < fold.num_workers(); ++i) {
      const std::uint32_t partner = i ^ distance;
      plan.transfer(places[partner][at[partner]], places[i][at[i] + 1], Combine::reduce, places[i][at[i]]);
    }
    for (std::size_t& index : at) ++index;
  }
  for (std::uint32_t i = 0; i < fold.num_workers(); ++i) {
    const Location output = plan.output(fold.worker(i), 0, 0);
    plan.copy(places[i].back(), output);
    if (fold.extra(i)) plan.transfer(output, plan.output(*fold.extra(i), 0, 0), Combine::overwrite);
  }
  return std::move(plan).finish();
}

/// Exchanges all blocks gathered so far with partners at distance 1, 2, 4 ...
///
/// Shape:  output block r is rank r's input.
/// Cost:   log2(n) rounds, two more unless n is a power of two; each worker sends n-1 blocks, or up to 2(n-1) if it
/// works
///         for an extra rank.
/// Source: Thakur, Rabenseifner & Gropp, IJHPCA 2005.
Result<Plan> all_gather(const Request& request) {
  const Line line(request.shape);
  const Fold fold(line);
  PlanBuilder plan = start(request, kRecursiveDoubling);

  std::vector<std::vector<Rank>> gathered(fold.num_workers());
  const auto place_of = [&](Rank holder, Rank block) {
    return holder == block ? plan.input(holder, 0, 0) : plan.output(holder, block.value(), 0);
  };
  for (std::uint32_t i = 0; i < fold.num_workers(); ++i) {
    const Rank worker = fold.worker(i);
    gathered[i].push_back(worker);
    if (!fold.extra(i)) continue;
    const Rank extra = *fold.extra(i);
    plan.transfer(plan.input(extra, 0, 0), plan.output(worker, extra.value(), 0), Combine::overwrite);
    gathered[i].push_back(extra);
  }
  for (std::uint32_t distance = 1; distance < fold.num_workers(); distance *= 2) {
    const std::vector<std::vector<Rank>> before = gathered;
    for (std::uint32_t i = 0; i < fold.num_workers(); ++i) {
      const std::uint32_t partner = i ^ distance;
      for (const Rank block : before[partner]) {
        plan.transfer(place_of(fold.worker(partner), block), plan.output(fold.worker(i), block.value(), 0),
                      Combine::overwrite);
        gathered[i].push_back(block);
      }
    }
  }
  for (std::uint32_t i = 0; i < fold.num_workers(); ++i) {
    if (!fold.extra(i)) continue;
    const Rank extra = *fold.extra(i);
    for (const Rank block : gathered[i]) {
      if (block == extra) continue;
      plan.transfer(place_of(fold.worker(i), block), plan.output(extra, block.value(), 0), Combine::overwrite);
    }
  }
  for (std::uint32_t i = 0; i < line.size(); ++i) {
    plan.copy(plan.input(line.at(i), 0, 0), plan.output(line.at(i), line.at(i).value(), 0));
  }
  return std::move(plan).finish();
}

}  // namespace

constinit const Algorithm kRecursiveDoubling{
    .name = "recursive_doubling",
    .summary = "log2(n) rounds: small buffers between many ranks",
    .builders =
        {
            {Collective::all_reduce, all_reduce},
            {Collective::barrier, all_reduce},
            {Collective::all_gather, all_gather},
        },
};

}  // namespace weft::collectives::algorithms
