#pragma once

#include "collectives/algorithms/algorithm.h"
#include "collectives/plan/builder.h"

namespace weft::collectives::algorithms {

/// One per file of this folder; algorithm.cc lists them.
extern const Algorithm kDirect;
extern const Algorithm kDirectSplit;
extern const Algorithm kRing;
extern const Algorithm kRecursiveDoubling;
extern const Algorithm kHalvingDoubling;
extern const Algorithm kBinomialTree;
extern const Algorithm kPairwise;
extern const Algorithm kTwoLevel;

/// The builder of an algorithm's plan with `parts` parts a block.
inline plan::PlanBuilder start(const Request& request, const Algorithm& algorithm, std::uint32_t parts = 1) {
  return {request.contract,
          {.name = std::string(algorithm.name), .parts_per_block = parts, .lanes = 1, .focus = request.focus}};
}

}  // namespace weft::collectives::algorithms
