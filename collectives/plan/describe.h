#pragma once

#include <cstdint>
#include <string>

#include "collectives/plan/plan.h"

namespace weft::collectives::plan {

/// For people: "output block 2 part 1 of rank 3". parts_per_block > 0. Thread: any.
std::string describe(const Location& location, std::uint32_t parts_per_block);

/// For people: "rank 3 step 5 (receive_reduce of transfer 7 from rank 2)". Thread: any.
std::string describe(const Plan& plan, Rank rank, std::uint32_t position);

}  // namespace weft::collectives::plan
