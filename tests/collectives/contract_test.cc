#include "collectives/contract.h"

#include <gtest/gtest.h>

namespace weft::collectives {
namespace {

struct Row {
  Collective collective;
  std::uint32_t root_input, other_input, root_output, other_output;
  std::optional<std::uint32_t> root_shared, other_shared;
};

/// Four ranks, root 2, other 1.
constexpr Row kRows[] = {
    {Collective::all_reduce, 1, 1, 1, 1, 0, 0},
    {Collective::reduce, 1, 1, 1, 0, 0, std::nullopt},
    {Collective::broadcast, 1, 0, 1, 1, 0, std::nullopt},
    {Collective::all_gather, 1, 1, 4, 4, 2, 1},
    {Collective::reduce_scatter, 4, 4, 1, 1, 2, 1},
    {Collective::gather, 1, 1, 4, 0, 2, std::nullopt},
    {Collective::scatter, 4, 0, 1, 1, 2, std::nullopt},
    {Collective::all_to_all, 4, 4, 4, 4, std::nullopt, std::nullopt},
    {Collective::barrier, 1, 1, 1, 1, 0, 0},
};

TEST(Contract, CountsBlocksAsItsTableSays) {
  static_assert(std::size(kRows) == kCollectives);
  for (const Row& row : kRows) {
    Contract contract{row.collective, RankCount{4}, Rank{2}, Placement::in_place};
    EXPECT_EQ(contract.input_blocks(Rank{2}), row.root_input) << name_of(row.collective);
    EXPECT_EQ(contract.input_blocks(Rank{1}), row.other_input) << name_of(row.collective);
    EXPECT_EQ(contract.output_blocks(Rank{2}), row.root_output) << name_of(row.collective);
    EXPECT_EQ(contract.output_blocks(Rank{1}), row.other_output) << name_of(row.collective);
    EXPECT_EQ(contract.shared_block(Rank{2}), row.root_shared) << name_of(row.collective);
    EXPECT_EQ(contract.shared_block(Rank{1}), row.other_shared) << name_of(row.collective);
    contract.placement = Placement::out_of_place;
    EXPECT_EQ(contract.shared_block(Rank{2}), std::nullopt) << name_of(row.collective);
  }
}

}  // namespace
}  // namespace weft::collectives
