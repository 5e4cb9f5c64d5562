#include "tools/bench/statistics.h"

#include <algorithm>
#include <cmath>

namespace weft::tools {
namespace {

using collectives::Collective;

/// Blocks of the larger of a rank's two buffers.
std::uint64_t blocks_of(Collective collective, std::uint32_t ranks) {
  switch (collective) {
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::gather:
    case Collective::scatter:
    case Collective::all_to_all: return ranks;
    default: return 1;
  }
}

}  // namespace

Times times_of(std::vector<double> times_ns) {
  std::sort(times_ns.begin(), times_ns.end());
  const std::size_t n = times_ns.size();
  const double median = n % 2 == 1 ? times_ns[n / 2] : (times_ns[n / 2 - 1] + times_ns[n / 2]) / 2;
  const auto nearest = static_cast<std::size_t>(std::ceil(0.99 * static_cast<double>(n)));
  return {median / 1e3, times_ns[std::max<std::size_t>(nearest, 1) - 1] / 1e3, times_ns.front() / 1e3};
}

std::uint64_t iterations_for(double each_ns, Nanos budget) {
  constexpr double kLeast = 5;
  constexpr double kMost = 20'000;
  return static_cast<std::uint64_t>(
      std::clamp(static_cast<double>(budget.count()) / std::max(each_ns, 1.0), kLeast, kMost));
}

std::uint64_t block_count(Collective collective, std::uint64_t size_bytes, std::uint64_t type_bytes,
                          std::uint32_t ranks) {
  if (collective == Collective::barrier) return 0;
  return std::max<std::uint64_t>(size_bytes / type_bytes / blocks_of(collective, ranks), 1);
}

std::uint64_t message_bytes(Collective collective, std::uint64_t count, std::uint64_t type_bytes, std::uint32_t ranks) {
  return collective == Collective::barrier ? 0 : count * type_bytes * blocks_of(collective, ranks);
}

double bus_factor(Collective collective, std::uint32_t ranks) {
  if (ranks < 2) return 0;
  const double n = ranks;
  switch (collective) {
    case Collective::all_reduce: return 2 * (n - 1) / n;
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::gather:
    case Collective::scatter:
    case Collective::all_to_all: return (n - 1) / n;
    case Collective::reduce:
    case Collective::broadcast: return 1;
    case Collective::barrier: return 0;
  }
  return 0;
}

double gigabytes_per_second(std::uint64_t size_bytes, double microseconds) {
  return microseconds > 0 ? static_cast<double>(size_bytes) / microseconds / 1e3 : 0;
}

}  // namespace weft::tools
