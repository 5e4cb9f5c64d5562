#include "collectives/select/predict.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "collectives/plan/cost.h"

namespace weft::collectives::select {
namespace {

using algorithms::Algorithm;
using algorithms::Request;

std::uint32_t most_ranks_on_a_host(const Shape& shape) noexcept {
  std::size_t most = 0;
  for (std::uint32_t host = 0; host < shape.num_hosts(); ++host) most = std::max(most, shape.ranks_of(host).size());
  return static_cast<std::uint32_t>(most);
}

plan::CostModel cost_model(const Shape& shape, const Machine& machine, std::uint64_t block_bytes) {
  const bool is_beyond_cache = block_bytes >= kBeyondCache;
  plan::CostModel model;
  const plan::LinkCost& same_host = is_beyond_cache ? machine.same_host_beyond_cache : machine.same_host;
  model.link = [&](Rank from, Rank to) {
    return shape.host_of(from) == shape.host_of(to) ? same_host : machine.other_host;
  };
  model.reduce_bytes_per_ns = is_beyond_cache ? machine.reduce_bytes_per_ns_beyond_cache : machine.reduce_bytes_per_ns;
  model.copy_bytes_per_ns = is_beyond_cache ? machine.copy_bytes_per_ns_beyond_cache : machine.copy_bytes_per_ns;
  model.slots_per_host = machine.cores_per_host;
  model.switch_ns = machine.switch_ns;
  model.host_bytes_per_ns = machine.host_bytes_per_ns;
  model.slicing = machine.slicing;
  return model;
}

Result<Nanos> simulate(const Algorithm& algorithm, const Request& request, std::uint64_t count,
                       std::uint32_t type_bytes, const Machine& machine) {
  WEFT_TRY_ASSIGN(const plan::Plan plan, algorithm.make_plan(request));
  return plan::predict(plan, request.shape, cost_model(request.shape, machine, count * type_bytes), count, type_bytes);
}

/// About `ranks` ranks on hosts like those of `shape`: as many hosts as its share of the ranks, at least two if there
/// are two. Hosts of unequal size stay unequal.
Shape shrunk(const Shape& shape, std::uint32_t ranks) {
  const std::uint32_t n = shape.ranks().value();
  const auto share = static_cast<std::uint32_t>(std::uint64_t{shape.num_hosts()} * ranks / n);
  const std::uint32_t hosts = std::max(share, std::min(2U, shape.num_hosts()));
  std::vector<std::uint32_t> host_of_rank;
  for (std::uint32_t r = 0; r < ranks; ++r) host_of_rank.push_back(r / ((ranks + hosts - 1) / hosts));
  if (!shape.is_uniform()) host_of_rank.push_back(host_of_rank.back());
  return Shape::of_hosts(host_of_rank);
}

/// Cores shrink with the ranks that share them.
Machine shrunk(const Machine& machine, const Shape& from, const Shape& to) {
  Machine result = machine;
  if (machine.cores_per_host == 0) return result;
  const std::uint64_t cores =
      std::uint64_t{machine.cores_per_host} * most_ranks_on_a_host(to) / most_ranks_on_a_host(from);
  result.cores_per_host = static_cast<std::uint32_t>(std::max<std::uint64_t>(cores, 1));
  return result;
}

}  // namespace

Result<Nanos> predict(const Algorithm& algorithm, const Request& request, std::uint64_t count, std::uint32_t type_bytes,
                      const Machine& machine) {
  const std::uint32_t ranks = request.shape.ranks().value();
  if (ranks <= kMaxSimulatedRanks) return simulate(algorithm, request, count, type_bytes, machine);

  std::array<double, 3> nanos{};
  for (std::uint32_t i = 0; i < 3; ++i) {
    Request smaller = request;
    smaller.shape = shrunk(request.shape, kMaxSimulatedRanks >> (2 - i));
    smaller.contract.ranks = smaller.shape.ranks();
    smaller.contract.root = Rank{0};
    const Machine fewer_cores = shrunk(machine, request.shape, smaller.shape);
    WEFT_TRY_ASSIGN(const Nanos time, simulate(algorithm, smaller, count, type_bytes, fewer_cores));
    nanos[i] = static_cast<double>(time.count());
  }
  double growth = std::max(nanos[2] - nanos[1], 0.0);
  // Rounds that grow with n double their growth, those that grow with log2 n keep it; n^2 work on few cores makes it 4.
  const double ratio = std::clamp(growth / std::max(nanos[1] - nanos[0], 1.0), 1.0, 4.0);
  double time = nanos[2];
  double doublings = std::log2(static_cast<double>(ranks) / kMaxSimulatedRanks);
  for (; doublings > 0; doublings -= 1) {
    growth *= ratio;
    time += growth * std::min(doublings, 1.0);
  }
  return Nanos{std::llround(time)};
}

}  // namespace weft::collectives::select
