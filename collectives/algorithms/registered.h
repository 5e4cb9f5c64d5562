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

/// True if the request makes sense in itself: sizes agree, the root exists, the placement is one of the collective's.
inline bool is_sound(const Request& request) noexcept {
  const Contract& contract = request.contract;
  return contract.ranks.value() >= 1 && request.shape.ranks() == contract.ranks &&
         contract.root.value() < contract.ranks.value() &&
         (contract.collective != Collective::all_to_all || contract.placement == Placement::out_of_place);
}

/// What make_plan answers where can_plan says no.
inline Error cannot_plan(const Request& request, const Algorithm& algorithm) {
  return {ErrorCode::unsupported,
          std::string("plan ") + std::string(name_of(request.contract.collective)) + " with algorithm " +
              std::string(algorithm.name) + " for " + std::to_string(request.contract.ranks.value()) + " ranks on " +
              std::to_string(request.shape.num_hosts()) + " hosts",
          "Choose another algorithm with WEFT_ALGORITHM, or leave it at auto"};
}

}  // namespace weft::collectives::algorithms
