#include <gtest/gtest.h>

#include "base/random.h"
#include "collectives/plan/text.h"
#include "collectives/plan/verify.h"
#include "tests/fakes/plan_oracle.h"
#include "tests/plans/sample_plans.h"

namespace weft::collectives::plan {
namespace {

/// Gives some of a text's digits other values: most of what comes out is a plan, and most of those are wrong.
std::string renumber(std::string text, Random& random) {
  const std::uint64_t changes = 1 + random.below(3);
  for (std::uint64_t i = 0; i < changes; ++i) {
    const std::size_t at = text.find_first_of("0123456789", random.below(text.size()));
    if (at != std::string::npos) text[at] = static_cast<char>('0' + random.below(4));
  }
  return text;
}

/// Changes some bytes, words or lines of a text.
std::string disturb(std::string text, Random& random) {
  static constexpr std::string_view kPieces[] = {
      "0", "1", "4294967295", "4294967296", "-1", "rank", "after", "\n", "input", "send", "[", "]", "@", "#", " ", "t"};
  const std::uint64_t changes = 1 + random.below(4);
  for (std::uint64_t i = 0; i < changes && !text.empty(); ++i) {
    const std::size_t at = random.below(text.size());
    const std::size_t length = std::min<std::size_t>(random.below(12), text.size() - at);
    switch (random.below(5)) {
      case 0: text[at] = static_cast<char>(random.next()); break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(at, kPieces[random.below(std::size(kPieces))]); break;
      case 3: text.insert(random.below(text.size()), text.substr(at, random.below(80))); break;
      case 4: text[at] = static_cast<char>('0' + random.below(10)); break;
    }
  }
  return text;
}

/// Whatever the text: no crash, an error with a line, or a plan that comes back and that verify() can judge.
TEST(PlanTextFuzz, SurvivesDisturbedTexts) {
  Random random{20240607};
  const TextLimits limits{.max_ranks = 64, .max_steps = 2000, .max_chunks = 5000};
  std::vector<std::string> texts;
  for (const Plan& plan : samples::all()) {
    if (to_text(plan).size() < 6000) texts.push_back(to_text(plan));
  }
  std::size_t parsed_count = 0;
  std::size_t accepted_count = 0;
  for (int round = 0; round < 20000; ++round) {
    const std::string& original = texts[random.below(texts.size())];
    const std::string text = random.happens(50) ? renumber(original, random) : disturb(original, random);
    const Result<Plan> plan = parse_plan(text, limits);
    if (!plan) {
      EXPECT_NE(plan.error().message().find("line "), std::string::npos) << plan.error().message();
      continue;
    }
    ++parsed_count;
    const Result<Plan> again = parse_plan(to_text(*plan), limits);
    ASSERT_TRUE(again) << text << again.error().message();
    Plan expected = *plan;
    expected.name = again->name;  // Runs of blanks become one.
    EXPECT_EQ(*again, expected) << text;
    const bool is_accepted = verify(*plan).has_value();
    const bool is_right = fakes::is_right(*plan);
    EXPECT_TRUE(is_right || !is_accepted) << text;
    accepted_count += is_accepted ? 1 : 0;
  }
  EXPECT_GT(parsed_count, 500U);
  EXPECT_GT(accepted_count, 50U);
  RecordProperty("parsed", std::to_string(parsed_count) + ", accepted " + std::to_string(accepted_count));
}

}  // namespace
}  // namespace weft::collectives::plan
