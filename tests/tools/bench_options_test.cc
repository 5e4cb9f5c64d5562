#include "tools/bench/options.h"

#include <gtest/gtest.h>

#include <functional>

namespace weft::tools {
namespace {

BenchOptions all_reduce() {
  BenchOptions options;
  EXPECT_TRUE(choose_subject(options, "all_reduce", ""));
  return options;
}

TEST(BenchOptions, DefaultsMakeSense) {
  EXPECT_TRUE(check(all_reduce(), 1));
  EXPECT_TRUE(check(all_reduce(), 4));
}

TEST(BenchOptions, NonsenseIsRefusedAndNamed) {
  const struct {
    const char* named;
    std::function<void(BenchOptions&)> spoil;
  } cases[] = {
      {"-e", [](BenchOptions& o) { o.end_bytes = 4, o.begin_bytes = 8; }},
      {"-b", [](BenchOptions& o) { o.begin_bytes = 3; }},
      {"-b", [](BenchOptions& o) { o.begin_bytes = 0; }},
      {"-f", [](BenchOptions& o) { o.factor = 1; }},
      {"-f", [](BenchOptions& o) { o.factor = 0; }},
      {"-i", [](BenchOptions& o) { o.step_bytes = 1; }},
      {"-r", [](BenchOptions& o) { o.root = 2; }},
      {"-n", [](BenchOptions& o) { o.iterations = 1'000'000'000; }},
      {"--budget", [](BenchOptions& o) { o.budget = Nanos::zero(); }},
      {"--steps", [](BenchOptions& o) { o.steps = 0; }},
      {"--scale", [](BenchOptions& o) { o.scale = -1; }},
      {"--scale", [](BenchOptions& o) { o.scale = 0; }},
      {"--threshold-busbw", [](BenchOptions& o) { o.threshold_busbw = -1; }},
      {"--pairs", [](BenchOptions& o) { o.wants_pairs = true; }},
  };
  for (const auto& [named, spoil] : cases) {
    BenchOptions options = all_reduce();
    spoil(options);
    const Status status = check(options, 2);
    ASSERT_FALSE(status) << named;
    EXPECT_EQ(status.error().code(), ErrorCode::invalid_argument);
    EXPECT_NE(status.error().doing().find(named), std::string::npos) << status.error().message();
  }
}

TEST(BenchOptions, PointToPointNeedsTwoRanks) {
  BenchOptions options;
  ASSERT_TRUE(choose_subject(options, "p2p", ""));
  EXPECT_FALSE(check(options, 1));
  EXPECT_TRUE(check(options, 2));
}

TEST(BenchOptions, SubjectsAreChosenByName) {
  BenchOptions options;
  ASSERT_TRUE(choose_subject(options, "all", ""));
  EXPECT_EQ(options.collectives.size(), collectives::kCollectives);
  EXPECT_FALSE(choose_subject(options, "all_reduze", ""));
  EXPECT_FALSE(choose_subject(options, "workload", "")) << "a workload is a file";
  EXPECT_FALSE(choose_subject(options, "all_reduce", "file")) << "and nothing else is";
}

TEST(BenchOptions, OpsByName) {
  EXPECT_EQ(parse_ops("all")->size(), device::kReduceOps);
  EXPECT_EQ(parse_ops("avg")->front(), device::ReduceOp::avg);
  EXPECT_FALSE(parse_ops("median"));
}

TEST(BenchOptions, SizesGrowByFactorOrStepUpToTheEnd) {
  BenchOptions options = all_reduce();
  options.end_bytes = 600;
  EXPECT_EQ(sizes_of(options), (std::vector<std::uint64_t>{8, 32, 128, 512}));
  options.end_bytes = 512;
  EXPECT_EQ(sizes_of(options).back(), 512U);
  options.end_bytes = 30;
  options.step_bytes = 10;
  EXPECT_EQ(sizes_of(options), (std::vector<std::uint64_t>{8, 18, 28}));
  options.begin_bytes = options.end_bytes;
  EXPECT_EQ(sizes_of(options), (std::vector<std::uint64_t>{30}));
}

TEST(BenchOptions, SizesEndEvenIfTheNextOneWouldOverflow) {
  BenchOptions options = all_reduce();
  options.end_bytes = std::uint64_t{1} << 40;
  options.factor = std::uint64_t{1} << 63;
  EXPECT_EQ(sizes_of(options), (std::vector<std::uint64_t>{8}));
}

}  // namespace
}  // namespace weft::tools
