#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "collectives/plan/text.h"
#include "tests/plans/plan_cases.h"

namespace weft::collectives {
namespace {

/// tests/golden/plans of the source tree.
std::filesystem::path golden_folder() { return std::filesystem::path(WEFT_SOURCE_DIR) / "tests" / "golden" / "plans"; }

/// Only scripts/update_golden.py sets this; then files are written instead of compared.
bool is_update() { return std::getenv("UPDATE_GOLDEN") != nullptr; }

std::string file_name(const PlanCase& plan_case, std::uint32_t ranks) {
  return plan_case.name() + "_" + std::to_string(ranks) + ".txt";
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class GoldenPlans : public testing::TestWithParam<PlanCase> {};
INSTANTIATE_TEST_SUITE_P(All, GoldenPlans, testing::ValuesIn(all_cases()), name_of_case);

TEST_P(GoldenPlans, ChangeOnlyOnPurpose) {
  for (std::uint32_t ranks = 2; ranks <= 4; ++ranks) {
    const std::vector<NamedRequest> all = requests(GetParam(), ranks, Breadth::one_shape);
    if (all.empty()) continue;  // Two levels need three ranks.
    const std::filesystem::path path = golden_folder() / file_name(GetParam(), ranks);
    const std::string text = plan::to_text(planned(GetParam(), all.front().request));
    if (is_update()) {
      std::ofstream(path, std::ios::binary) << text;
    }
    ASSERT_EQ(text, read(path)) << path << " differs; if the change is meant, run scripts/update_golden.py and review "
                                << "the difference";
  }
}

TEST(GoldenFolder, HoldsNoPlanThatNobodyMakes) {
  std::set<std::string> expected;
  for (const PlanCase& plan_case : all_cases()) {
    for (std::uint32_t ranks = 2; ranks <= 4; ++ranks) {
      if (!requests(plan_case, ranks, Breadth::one_shape).empty()) expected.insert(file_name(plan_case, ranks));
    }
  }
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder())) {
    found.insert(entry.path().filename().string());
  }
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace weft::collectives
