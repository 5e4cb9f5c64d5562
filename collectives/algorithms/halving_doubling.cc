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

/// Recursive halving of what a rank is responsible for, then recursive doubling of what it knows.
///
/// Shape:  p parts, p = the largest power of two <= n; every rank ends with the reduction of each part. A part is
///         completed by one rank only, so that the bits are the same everywhere.
/// Cost:   2 log2(p) rounds, each worker sends 2(p-1)/p of the buffer, the minimum; unless n is a power of two, two
/// more
///         rounds of the whole buffer for some ranks. No scratch. The nearest partner is first, as it gets the most
///         bytes.
/// Source: Rabenseifner, Optimization of Collective Reduction Operations, ICCS 2004.
Result<Plan> all_reduce(const Request& request) {
  const Line line(request.shape);
  const Fold fold(line);
  const std::uint32_t parts = fold.num_workers();
  PlanBuilder plan = start(request, kHalvingDoubling, parts);
  if (line.size() == 1) plan.copy(plan.input(Rank{0}, 0, 0), plan.output(Rank{0}, 0, 0));

  for (std::uint32_t i = 0; i < parts; ++i) {
    if (!fold.extra(i)) continue;
    for (std::uint32_t part = 0; part < parts; ++part) {
      plan.transfer(plan.input(*fold.extra(i), 0, part), plan.output(fold.worker(i), 0, part), Combine::reduce,
                    plan.input(fold.worker(i), 0, part));
    }
  }
  // Invariant: before `distance`, worker i is responsible for the parts that equal i modulo `distance`.
  const auto value_of = [&](std::uint32_t i, std::uint32_t part, std::uint32_t distance) {
    const bool is_untouched = distance == 1 && !fold.extra(i);
    return is_untouched ? plan.input(fold.worker(i), 0, part) : plan.output(fold.worker(i), 0, part);
  };
  for (std::uint32_t distance = 1; distance < parts; distance *= 2) {
    for (std::uint32_t i = 0; i < parts; ++i) {
      for (std::uint32_t part = i % (2 * distance); part < parts; part += 2 * distance) {
        plan.transfer(value_of(i ^ distance, part, distance), plan.output(fold.worker(i), 0, part), Combine::reduce,
                      value_of(i, part, distance));
      }
    }
  }
  for (std::uint32_t distance = parts / 2; distance > 0; distance /= 2) {
    for (std::uint32_t i = 0; i < parts; ++i) {
      const std::uint32_t partner = i ^ distance;
      for (std::uint32_t part = partner % (2 * distance); part < parts; part += 2 * distance) {
        plan.transfer(plan.output(fold.worker(partner), 0, part), plan.output(fold.worker(i), 0, part),
                      Combine::overwrite);
      }
    }
  }
  for (std::uint32_t i = 0; i < parts; ++i) {
    if (!fold.extra(i)) continue;
    for (std::uint32_t part = 0; part < parts; ++part) {
      plan.transfer(plan.output(fold.worker(i), 0, part), plan.output(*fold.extra(i), 0, part), Combine::overwrite);
    }
  }
  return std::move(plan).finish();
}

/// Recursive halving of the blocks that a rank is responsible for, until only its own is left.
///
/// Shape:  n input blocks; the output is the reduction of input block `rank`.
/// Cost:   log2(p) rounds, p = the largest power of two <= n; each worker sends n-1 blocks; unless n is a power of two,
///         two more rounds, the first of n blocks. Up to n blocks of scratch, as inputs stay as they are.
/// Source: Thakur, Rabenseifner & Gropp, IJHPCA 2005.
Result<Plan> reduce_scatter(const Request& request) {
  const Line line(request.shape);
  const Fold fold(line);
  const std::uint32_t n = line.size();
  const std::uint32_t workers = fold.num_workers();
  PlanBuilder plan = start(request, kHalvingDoubling);
  if (n == 1) plan.copy(plan.input(Rank{0}, 0, 0), plan.output(Rank{0}, 0, 0));

  std::vector<std::vector<Location>> value(workers);  // By worker and block.
  for (std::uint32_t i = 0; i < workers; ++i) {
    for (std::uint32_t block = 0; block < n; ++block) value[i].push_back(plan.input(fold.worker(i), block, 0));
    if (!fold.extra(i)) continue;
    for (std::uint32_t block = 0; block < n; ++block) {
      const Location sum = plan.new_scratch(fold.worker(i), 0);
      plan.transfer(plan.input(*fold.extra(i), block, 0), sum, Combine::reduce, value[i][block]);
      value[i][block] = sum;
    }
  }
  const auto take = [&](std::uint32_t i, std::uint32_t partner, Rank block, bool is_last) {
    Location& own = value[i][block.index()];
    Location sum = own;
    if (is_last && block == fold.worker(i)) {
      sum = plan.output(block, 0, 0);
    } else if (own.buffer != plan::Buffer::scratch) {
      sum = plan.new_scratch(fold.worker(i), 0);
    }
    plan.transfer(value[partner][block.index()], sum, Combine::reduce, own);
    own = sum;
  };
  // Invariant: before `distance`, worker i is responsible for the blocks of the workers that equal i modulo `distance`.
  for (std::uint32_t distance = 1; distance < workers; distance *= 2) {
    const bool is_last = 2 * distance == workers;
    for (std::uint32_t i = 0; i < workers; ++i) {
      for (std::uint32_t owner = i % (2 * distance); owner < workers; owner += 2 * distance) {
        take(i, i ^ distance, fold.worker(owner), is_last);
        if (fold.extra(owner)) take(i, i ^ distance, *fold.extra(owner), is_last);
      }
    }
  }
  for (std::uint32_t i = 0; i < workers; ++i) {
    if (!fold.extra(i)) continue;
    plan.transfer(value[i][fold.extra(i)->index()], plan.output(*fold.extra(i), 0, 0), Combine::overwrite);
  }
  return std::move(plan).finish();
}

}  // namespace

constinit const Algorithm kHalvingDoubling{
    .name = "halving_doubling",
    .summary = "least bytes in 2 log2(n) rounds: medium buffers between many ranks, best for powers of two",
    .builders =
        {
            {Collective::all_reduce, all_reduce},
            {Collective::reduce_scatter, reduce_scatter},
        },
};

}  // namespace weft::collectives::algorithms
