#include "collectives/algorithms/algorithm.h"

#include <array>

#include "collectives/algorithms/registered.h"

namespace weft::collectives::algorithms {

std::span<const Algorithm> all_algorithms() noexcept {
  // The order breaks ties when two cost the same: the simpler plan first.
  static const std::array<Algorithm, 8> kAll{kDirect,          kDirectSplit, kBinomialTree, kRecursiveDoubling,
                                             kHalvingDoubling, kPairwise,    kRing,         kTwoLevel};
  return kAll;
}

const Algorithm* find_algorithm(std::string_view name) noexcept {
  for (const Algorithm& algorithm : all_algorithms()) {
    if (algorithm.name == name) return &algorithm;
  }
  return nullptr;
}

}  // namespace weft::collectives::algorithms
