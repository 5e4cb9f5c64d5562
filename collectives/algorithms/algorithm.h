#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "collectives/contract.h"
#include "collectives/plan/plan.h"
#include "collectives/shape.h"

namespace weft::collectives::algorithms {

/// What an algorithm is asked to plan.
struct Request {
  Contract contract;
  Shape shape;                ///< shape.ranks() == contract.ranks.
  std::optional<Rank> focus;  ///< See PlanBuilder::Options::focus.
};

/// A named, pure function from a contract and a shape to a plan.
struct Algorithm {
  std::string_view name;     ///< "ring", "direct", ...
  std::string_view summary;  ///< One line: when it wins.
  bool (*can_plan)(const Request& request) noexcept;
  Result<plan::Plan> (*make_plan)(const Request& request);
};

/// Every algorithm, in a fixed order. Thread: any.
std::span<const Algorithm> all_algorithms() noexcept;
/// By name, or null.
const Algorithm* find_algorithm(std::string_view name) noexcept;

}  // namespace weft::collectives::algorithms
