#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "collectives/algorithms/algorithm.h"
#include "collectives/contract.h"

namespace weft::collectives::select {

/// What a user asked for in WEFT_ALGORITHM, read once.
///
/// The text is a list separated by commas. `name` is a wish for every collective that this algorithm plans; the others
/// stay automatic. `collective=name` is an order for this collective. `auto` takes the place of a name. Examples:
/// "auto", "ring", "all_reduce=ring,broadcast=direct", "direct,all_reduce=auto".
class AlgorithmSetting {
 public:
  /// Everything automatic.
  AlgorithmSetting() = default;

  /// Errors: malformed — an unknown name, a collective that the algorithm never plans, or one that is set twice; the
  /// remedy lists what exists.
  static Result<AlgorithmSetting> parse(std::string_view text);

  /// What must plan this collective or else be an error; null if nothing was ordered.
  [[nodiscard]] const algorithms::Algorithm* ordered(Collective collective) const noexcept {
    const auto& entry = orders_[static_cast<std::size_t>(collective)];
    return entry ? *entry : nullptr;
  }
  /// What plans this collective if it can; null if nothing was wished, or the collective was set to auto.
  [[nodiscard]] const algorithms::Algorithm* wished(Collective collective) const noexcept {
    return orders_[static_cast<std::size_t>(collective)] ? nullptr : wish_.value_or(nullptr);
  }

 private:
  /// Unset, or set to an algorithm, or set to auto (null).
  using Entry = std::optional<const algorithms::Algorithm*>;
  Entry wish_;
  std::array<Entry, kCollectives> orders_;
};

/// The names of all algorithms that can plan `request`, separated by commas; for messages.
std::string names_that_can_plan(const algorithms::Request& request);

}  // namespace weft::collectives::select
