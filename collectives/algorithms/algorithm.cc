#include "collectives/algorithms/algorithm.h"

#include <array>

#include <fmt/format.h>

#include "collectives/algorithms/registered.h"

namespace weft::collectives::algorithms {
namespace {

/// True if the request makes sense in itself: sizes agree, the root exists, the placement is one of the collective's.
bool is_sound(const Request& request) noexcept {
  const Contract& contract = request.contract;
  return contract.ranks.value() >= 1 && request.shape.ranks() == contract.ranks &&
         contract.root.value() < contract.ranks.value() &&
         (contract.collective != Collective::all_to_all || contract.placement == Placement::out_of_place);
}

}  // namespace

bool Algorithm::can_plan(const Request& request) const noexcept {
  return builders.of(request.contract.collective) != nullptr && is_sound(request) &&
         (suits == nullptr || suits(request));
}

Result<plan::Plan> Algorithm::make_plan(const Request& request) const {
  if (can_plan(request)) return builders.of(request.contract.collective)(request);
  return Error{ErrorCode::unsupported,
               fmt::format("plan {} with algorithm {} for {} ranks on {} hosts", name_of(request.contract.collective),
                           name, request.contract.ranks.value(), request.shape.num_hosts()),
               "Choose another algorithm with WEFT_ALGORITHM, or leave it at auto"};
}

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
