#include "collectives/shape.h"

#include <gtest/gtest.h>

namespace weft::collectives {
namespace {

std::vector<Rank> listed(std::span<const Rank> ranks) { return {ranks.begin(), ranks.end()}; }

TEST(Shape, NumbersHostsByTheirLowestRank) {
  const Shape shape = Shape::of_hosts(std::vector<std::uint32_t>{70, 5, 70, 9, 5, 9});
  EXPECT_EQ(shape.ranks().value(), 6U);
  EXPECT_EQ(shape.num_hosts(), 3U);
  EXPECT_EQ(shape.host_of(Rank{4}), 1U);
  EXPECT_EQ(listed(shape.ranks_of(0)), (std::vector<Rank>{Rank{0}, Rank{2}}));
  EXPECT_EQ(listed(shape.ranks_of(1)), (std::vector<Rank>{Rank{1}, Rank{4}}));
  EXPECT_EQ(listed(shape.ranks_of(2)), (std::vector<Rank>{Rank{3}, Rank{5}}));
  EXPECT_TRUE(shape.is_uniform());
}

TEST(Shape, FlatIsOneHost) {
  const Shape shape = Shape::flat(RankCount{3});
  EXPECT_EQ(shape.num_hosts(), 1U);
  EXPECT_EQ(shape.ranks_of(0).size(), 3U);
  EXPECT_TRUE(shape.is_uniform());
}

TEST(Shape, KnowsWhenHostsDiffer) { EXPECT_FALSE(Shape::of_hosts(std::vector<std::uint32_t>{0, 0, 1}).is_uniform()); }

}  // namespace
}  // namespace weft::collectives
