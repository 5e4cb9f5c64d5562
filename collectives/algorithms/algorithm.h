#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

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

/// What an algorithm plans: a builder of plans for each of its collectives.
class Builders {
 public:
  using Builder = Result<plan::Plan> (*)(const Request& request);
  constexpr Builders(std::initializer_list<std::pair<Collective, Builder>> list) noexcept {
    for (const auto& [collective, builder] : list) table_[static_cast<std::size_t>(collective)] = builder;
  }
  /// Null if the algorithm does not plan this collective.
  [[nodiscard]] constexpr Builder of(Collective collective) const noexcept {
    const auto index = static_cast<std::size_t>(collective);
    return index < kCollectives ? table_[index] : nullptr;
  }

 private:
  std::array<Builder, kCollectives> table_{};
};

/// A named, pure function from a contract and a shape to a plan.
struct Algorithm {
  std::string_view name;     ///< "ring", "direct", ...
  std::string_view summary;  ///< One line: when it wins.
  Builders builders;
  bool (*suits)(const Request& request) noexcept = nullptr;  ///< What it needs besides; null: nothing.

  [[nodiscard]] bool can_plan(const Request& request) const noexcept;
  /// Errors: unsupported — can_plan says no.
  [[nodiscard]] Result<plan::Plan> make_plan(const Request& request) const;
};

/// Every algorithm, in a fixed order. Thread: any.
std::span<const Algorithm> all_algorithms() noexcept;
/// By name, or null.
const Algorithm* find_algorithm(std::string_view name) noexcept;

}  // namespace weft::collectives::algorithms
