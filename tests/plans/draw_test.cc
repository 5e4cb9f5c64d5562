#include "collectives/plan/draw.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/plans/sample_plans.h"

namespace weft::collectives::plan {
namespace {

std::size_t count(const std::string& text, const std::string& piece) {
  std::size_t found = 0;
  for (std::size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) ++found;
  return found;
}

/// Every element that opens closes, in order; enough of XML for what is drawn.
bool is_balanced(const std::string& svg) {
  std::vector<std::string> open;
  for (std::size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
    const std::size_t end = svg.find('>', at);
    if (end == std::string::npos) return false;
    const bool closes = svg[at + 1] == '/';
    const std::size_t begin = at + (closes ? 2 : 1);
    const std::string name = svg.substr(begin, svg.find_first_of(" />", begin) - begin);
    if (!closes && svg[end - 1] != '/') open.push_back(name);
    if (!closes) continue;
    if (open.empty() || open.back() != name) return false;
    open.pop_back();
  }
  return open.empty();
}

TEST(PlanDrawing, ShowsEveryStepAndTransferOfEveryPlan) {
  for (const Plan& plan : samples::all()) {
    const Result<std::string> svg = draw_svg(plan);
    ASSERT_TRUE(svg) << svg.error().message();
    EXPECT_TRUE(is_balanced(*svg));
    EXPECT_EQ(count(*svg, "marker-end="), plan.num_transfers);
    std::size_t steps = 0;
    for (const auto& of_rank : plan.steps) steps += of_rank.size();
    EXPECT_EQ(count(*svg, "class=\"chunk\""), steps);
    EXPECT_EQ(count(*svg, "<circle") + count(*svg, "<rect") - count(*svg, "rx=\"6\"") - 1, steps + 5);  // + the legend.
    EXPECT_EQ(count(*svg, "class=\"rank\""), plan.contract.ranks.value());
    // Self-contained: nothing is fetched.
    EXPECT_EQ(count(*svg, "http"), 1U);
    EXPECT_EQ(count(*svg, "href"), 0U);
  }
}

TEST(PlanDrawing, ColoursByWhatTheReceiverDoes) {
  const Result<std::string> svg = draw_svg(samples::ring_all_reduce(4));
  ASSERT_TRUE(svg);
  EXPECT_EQ(count(*svg, "class=\"move reduce"), 12U);
  EXPECT_EQ(count(*svg, "class=\"move overwrite"), 12U);
  EXPECT_EQ(count(*svg, ">round 6<"), 1U);
  EXPECT_EQ(count(*svg, ">round 7<"), 0U);
}

TEST(PlanDrawing, EscapesNames) {
  Plan plan = samples::direct_reduce(2, Rank{0});
  plan.name = "<script>\"&\x01";
  const Result<std::string> svg = draw_svg(plan);
  ASSERT_TRUE(svg);
  EXPECT_EQ(count(*svg, "<script"), 0U);
  EXPECT_EQ(count(*svg, "&lt;script&gt;&quot;&amp; : reduce"), 2U);
}

TEST(PlanDrawing, RefusesWhatNobodyCouldRead) {
  const Result<std::string> many = draw_svg(samples::direct_reduce(65, Rank{0}));
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().code(), ErrorCode::limit_exceeded);
  EXPECT_FALSE(draw_svg(samples::ring_all_reduce(64)));  // 16k steps
  Plan plan = samples::direct_reduce(3, Rank{0});
  plan.steps[1].clear();
  EXPECT_EQ(draw_svg(plan).error().code(), ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace weft::collectives::plan
