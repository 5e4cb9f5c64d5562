#include "bootstrap/rank_list.h"

#include <fmt/format.h>

namespace weft::bootstrap {

std::string describe_ranks(std::span<const Rank> ranks, std::size_t num_parts_max) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  std::size_t at = 0;
  for (std::size_t part = 0; at < ranks.size(); ++part) {
    if (part == num_parts_max) return text + fmt::format(" and {} more", ranks.size() - at);
    std::size_t last = at;
    while (last + 1 < ranks.size() && ranks[last + 1].value() == ranks[last].value() + 1) ++last;
    if (part > 0) text += ", ";
    text += last == at ? fmt::format("{}", ranks[at].value())
                       : fmt::format("{}-{}", ranks[at].value(), ranks[last].value());
    at = last + 1;
  }
  return text;
}

void encode_members(std::span<const Rank> members, ByteWriter& writer) {
  for (std::size_t at = 0; at < members.size();) {
    // Strides are modulo 2^32, so that descending runs are runs too.
    const std::uint32_t stride = at + 1 < members.size() ? members[at + 1].value() - members[at].value() : 0;
    std::size_t end = at + 1;
    while (end < members.size() && members[end].value() - members[end - 1].value() == stride) ++end;
    writer.number(members[at].value()).number(stride).number(static_cast<std::uint32_t>(end - at));
    at = end;
  }
}

Result<std::vector<Rank>> decode_members(std::span<const std::byte> bytes, std::size_t num_members_max) {
  std::vector<Rank> members;
  ByteReader reader{bytes};
  while (!reader.is_exhausted() && !reader.has_failed()) {
    auto rank = reader.number<std::uint32_t>();
    const auto stride = reader.number<std::uint32_t>();
    const auto count = reader.number<std::uint32_t>();
    // Checked before anything is allocated: a few hostile bytes must not ask for gigabytes.
    if (count == 0 || count > num_members_max - members.size()) {
      return Error{ErrorCode::malformed, "a list of members is empty or longer than the job"};
    }
    for (std::uint32_t i = 0; i < count; ++i, rank += stride) members.emplace_back(rank);
  }
  WEFT_TRY(reader.finish("a list of members"));
  return members;
}

}  // namespace weft::bootstrap
