#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithm.h"

namespace weft::collectives {

/// One algorithm and one collective that it plans: what the tests of this folder are parametrised by.
struct PlanCase {
  const algorithms::Algorithm* algorithm;
  Collective collective;

  /// As in "ring_all_reduce".
  [[nodiscard]] std::string name() const;
  friend std::ostream& operator<<(std::ostream& out, const PlanCase& plan_case) { return out << plan_case.name(); }
};

/// What the parametrised tests of this folder are called by.
inline std::string name_of_case(const testing::TestParamInfo<PlanCase>& info) { return info.param.name(); }

/// Every pair for which there is some request that the algorithm can plan.
std::vector<PlanCase> all_cases();

/// A request, and words for it.
struct NamedRequest {
  algorithms::Request request;
  std::string name;  ///< As in "5 ranks, hosts 0 1 0 1 0, in place, root 2".
};

/// How much of the space of requests a test walks through.
enum class Breadth : std::uint8_t {
  every_root,  ///< Every root, both placements, all shapes of `ranks`.
  some_roots,  ///< First, middle and last root, both placements, all shapes.
  one_shape,   ///< Root 0, both placements, the first shape that the algorithm can plan.
};

/// All requests of a case with that many ranks that its algorithm can plan.
std::vector<NamedRequest> requests(const PlanCase& plan_case, std::uint32_t ranks, Breadth breadth);

/// One host; hosts in blocks; hosts in turns; hosts of unequal size; each rank alone.
std::vector<std::vector<std::uint32_t>> host_layouts(std::uint32_t ranks);

/// Makes the plan, or fails the test.
plan::Plan planned(const PlanCase& plan_case, const algorithms::Request& request);

}  // namespace weft::collectives
