#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/wire.h"

namespace weft::bootstrap {

/// "rank 3", "ranks 3, 7-9": how messages name many ranks in little space. `ranks` ascends.
/// At most `num_parts_max` ranges are written, then "and N more". Thread: any.
std::string describe_ranks(std::span<const Rank> ranks, std::size_t num_parts_max = 32);

/// Writes a group's members as runs of equal stride, so that the usual groups (all ranks, every eighth rank) take a few
/// bytes whatever their size. The same list always gives the same bytes.
void encode_members(std::span<const Rank> members, ByteWriter& writer);

/// Reads what encode_members wrote.
/// Errors: malformed — cut short, or more than `num_members_max` members.
Result<std::vector<Rank>> decode_members(std::span<const std::byte> bytes, std::size_t num_members_max);

}  // namespace weft::bootstrap
