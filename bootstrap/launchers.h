#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/settings.h"

namespace weft::bootstrap {

/// What a launcher told this process about its place; addresses and secrets are another matter.
struct Place {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint32_t local_rank = 0;
  std::uint32_t local_size = 1;
  std::string source;  ///< As Identity::source.
};

/// The value of `name` without blanks around it; an empty value counts as unset. Thread: any.
std::optional<std::string> find_value(const Settings::Lookup& environment, const std::string& name);

/// The place that the first launcher names that is present, in the order that identify() documents; nullopt if none is.
/// Errors: malformed — not a number, naming the variable; invalid_argument — present in part (names what is missing),
/// or rank >= size.
Result<std::optional<Place>> find_place(const Settings::Lookup& environment);

/// For a job of one rank: "rank 2 of 4 by Open MPI" if some launcher, known or not, says that there are others.
std::optional<std::string> find_contradiction(const Settings::Lookup& environment);

/// How many tasks of a Slurm step run on node number `node`, from the form "2(x3),1"; nullopt if it does not say.
std::optional<std::uint32_t> parse_slurm_tasks_per_node(const std::string& text, std::uint32_t node);

}  // namespace weft::bootstrap
