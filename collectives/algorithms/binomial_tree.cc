#include <algorithm>
#include <bit>
#include <vector>

#include "collectives/algorithms/line.h"
#include "collectives/algorithms/registered.h"

namespace weft::collectives::algorithms {
namespace {

using plan::Combine;
using plan::Location;
using plan::Plan;
using plan::PlanBuilder;

/// An edge of the binomial tree over positions 0..n-1: parent = child without its lowest bit, `span` = that bit.
/// The subtree of the child is the positions from child up to child + span.
struct Edge {
  std::uint32_t parent;
  std::uint32_t child;
  std::uint32_t span;
};

/// All edges, the longest first: the order in which a broadcast uses them (a reduction goes backwards).
std::vector<Edge> edges_from_root(std::uint32_t n) {
  std::vector<Edge> edges;
  for (std::uint32_t span = std::bit_ceil(n) / 2; span > 0; span /= 2) {
    for (std::uint32_t parent = 0; parent + span < n; parent += 2 * span) {
      edges.push_back({parent, parent + span, span});
    }
  }
  return edges;
}

std::vector<Edge> edges_to_root(std::uint32_t n) {
  std::vector<Edge> edges = edges_from_root(n);
  std::ranges::reverse(edges);
  return edges;
}

/// Who has the value passes it on; the number of those doubles in each round.
///
/// Shape:  the root's input arrives in everybody's output.
/// Cost:   ceil(log2 n) rounds of the whole buffer; the root sends it ceil(log2 n) times.
/// Source: Thakur, Rabenseifner & Gropp, IJHPCA 2005.
Result<Plan> broadcast(const Request& request) {
  const Line line(request.shape, request.contract.root);
  PlanBuilder plan = start(request, kBinomialTree);
  for (const Edge& edge : edges_from_root(line.size())) {
    const Location from = edge.parent == 0 ? plan.input(line.at(0), 0, 0) : plan.output(line.at(edge.parent), 0, 0);
    plan.transfer(from, plan.output(line.at(edge.child), 0, 0), Combine::overwrite);
  }
  plan.copy(plan.input(line.at(0), 0, 0), plan.output(line.at(0), 0, 0));
  return std::move(plan).finish();
}

/// The broadcast backwards: a parent reduces what its children send.
///
/// Shape:  the root's output is the reduction over ranks; other ranks use scratch, never their buffers.
/// Cost:   ceil(log2 n) rounds of the whole buffer; inner ranks need one buffer of scratch.
/// Source: Thakur, Rabenseifner & Gropp, IJHPCA 2005.
Result<Plan> reduce(const Request& request) {
  const Line line(request.shape, request.contract.root);
  PlanBuilder plan = start(request, kBinomialTree);
  std::vector<Location> value;
  for (std::uint32_t i = 0; i < line.size(); ++i) value.push_back(plan.input(line.at(i), 0, 0));
  if (line.size() == 1) plan.copy(value[0], plan.output(line.at(0), 0, 0));
  for (const Edge& edge : edges_to_root(line.size())) {
    Location sum = value[edge.parent];
    if (edge.parent == 0) {
      sum = plan.output(line.at(0), 0, 0);
    } else if (sum.buffer == plan::Buffer::input) {
      sum = plan.new_scratch(line.at(edge.parent), 0);
    }
    plan.transfer(value[edge.child], sum, Combine::reduce, value[edge.parent]);
    value[edge.parent] = sum;
  }
  return std::move(plan).finish();
}

/// A reduction to the first rank, then a broadcast from it: also barrier, over no elements.
///
/// Shape:  every rank ends with the reduction over ranks, computed by the first of the line only.
/// Cost:   2 ceil(log2 n) rounds of the whole buffer, in which most ranks send it twice. No scratch.
Result<Plan> all_reduce(const Request& request) {
  const Line line(request.shape);
  PlanBuilder plan = start(request, kBinomialTree);
  std::vector<Location> value;
  for (std::uint32_t i = 0; i < line.size(); ++i) value.push_back(plan.input(line.at(i), 0, 0));
  if (line.size() == 1) plan.copy(value[0], plan.output(line.at(0), 0, 0));
  for (const Edge& edge : edges_to_root(line.size())) {
    const Location sum = plan.output(line.at(edge.parent), 0, 0);
    plan.transfer(value[edge.child], sum, Combine::reduce, value[edge.parent]);
    value[edge.parent] = sum;
  }
  for (const Edge& edge : edges_from_root(line.size())) {
    plan.transfer(plan.output(line.at(edge.parent), 0, 0), plan.output(line.at(edge.child), 0, 0), Combine::overwrite);
  }
  return std::move(plan).finish();
}

/// Children hand all blocks of their subtree to their parent.
///
/// Shape:  at the root, output block r is rank r's input.
/// Cost:   ceil(log2 n) rounds; the root receives n-1 blocks, an inner rank holds its subtree's in scratch.
/// Source: Thakur, Rabenseifner & Gropp, IJHPCA 2005.
Result<Plan> gather(const Request& request) {
  const Line line(request.shape, request.contract.root);
  const std::uint32_t n = line.size();
  PlanBuilder plan = start(request, kBinomialTree);
  std::vector<Location> block;  // Where the block of a position has got to.
  for (std::uint32_t i = 0; i < n; ++i) block.push_back(plan.input(line.at(i), 0, 0));
  for (const Edge& edge : edges_to_root(n)) {
    for (std::uint32_t i = edge.child; i < std::min(edge.child + edge.span, n); ++i) {
      const Location to =
          edge.parent == 0 ? plan.output(line.at(0), line.at(i).value(), 0) : plan.new_scratch(line.at(edge.parent), 0);
      plan.transfer(block[i], to, Combine::overwrite);
      block[i] = to;
    }
  }
  plan.copy(block[0], plan.output(line.at(0), line.at(0).value(), 0));
  return std::move(plan).finish();
}

/// The gather backwards: a parent hands each child the blocks of its subtree.
///
/// Shape:  the output is the root's input block `rank`.
/// Cost:   ceil(log2 n) rounds; the root sends n-1 blocks, an inner rank holds its subtree's in scratch.
/// Source: Thakur, Rabenseifner & Gropp, IJHPCA 2005.
Result<Plan> scatter(const Request& request) {
  const Line line(request.shape, request.contract.root);
  const std::uint32_t n = line.size();
  PlanBuilder plan = start(request, kBinomialTree);
  std::vector<Location> block;
  for (std::uint32_t i = 0; i < n; ++i) block.push_back(plan.input(line.at(0), line.at(i).value(), 0));
  for (const Edge& edge : edges_from_root(n)) {
    for (std::uint32_t i = edge.child; i < std::min(edge.child + edge.span, n); ++i) {
      const Rank child = line.at(edge.child);
      const Location to = i == edge.child ? plan.output(child, 0, 0) : plan.new_scratch(child, 0);
      plan.transfer(block[i], to, Combine::overwrite);
      block[i] = to;
    }
  }
  plan.copy(block[0], plan.output(line.at(0), 0, 0));
  return std::move(plan).finish();
}

}  // namespace

constinit const Algorithm kBinomialTree{
    .name = "binomial_tree",
    .summary = "log2(n) rounds from or to one rank: small buffers between many ranks",
    .builders =
        {
            {Collective::all_reduce, all_reduce},
            {Collective::barrier, all_reduce},
            {Collective::broadcast, broadcast},
            {Collective::reduce, reduce},
            {Collective::gather, gather},
            {Collective::scatter, scatter},
        },
};

}  // namespace weft::collectives::algorithms
