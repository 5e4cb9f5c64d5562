#include <gtest/gtest.h>

#include "collectives/select/algorithm_setting.h"

namespace weft::collectives::select {
namespace {

AlgorithmSetting parsed(std::string_view text) {
  const Result<AlgorithmSetting> setting = AlgorithmSetting::parse(text);
  EXPECT_TRUE(setting) << text << ": " << setting.error().message();
  return setting.value_or(AlgorithmSetting{});
}

const algorithms::Algorithm* named(std::string_view name) { return algorithms::find_algorithm(name); }

TEST(AlgorithmSetting, OfNothingOrAutoAsksForNothing) {
  for (const std::string_view text : {"", "  ", "auto", " auto ", "all_reduce=auto,barrier=auto"}) {
    const AlgorithmSetting setting = parsed(text);
    for (std::size_t c = 0; c < kCollectives; ++c) {
      EXPECT_EQ(setting.ordered(static_cast<Collective>(c)), nullptr) << text;
      EXPECT_EQ(setting.wished(static_cast<Collective>(c)), nullptr) << text;
    }
  }
}

TEST(AlgorithmSetting, OfANameIsAWishForAllCollectives) {
  const AlgorithmSetting setting = parsed("ring");
  EXPECT_EQ(setting.wished(Collective::all_reduce), named("ring"));
  EXPECT_EQ(setting.wished(Collective::barrier), named("ring"));
  EXPECT_EQ(setting.ordered(Collective::all_reduce), nullptr);
}

TEST(AlgorithmSetting, OfACollectiveIsAnOrderForIt) {
  const AlgorithmSetting setting = parsed(" all_reduce = ring , broadcast=direct");
  EXPECT_EQ(setting.ordered(Collective::all_reduce), named("ring"));
  EXPECT_EQ(setting.ordered(Collective::broadcast), named("direct"));
  EXPECT_EQ(setting.ordered(Collective::reduce), nullptr);
  EXPECT_EQ(setting.wished(Collective::all_reduce), nullptr);
}

TEST(AlgorithmSetting, MixesAWishOrdersAndExceptions) {
  const AlgorithmSetting setting = parsed("ring,broadcast=direct,all_reduce=auto");
  EXPECT_EQ(setting.wished(Collective::reduce), named("ring"));
  EXPECT_EQ(setting.ordered(Collective::broadcast), named("direct"));
  EXPECT_EQ(setting.wished(Collective::broadcast), nullptr);
  EXPECT_EQ(setting.wished(Collective::all_reduce), nullptr);
  EXPECT_EQ(setting.ordered(Collective::all_reduce), nullptr);
}

struct Wrong {
  std::string_view text;
  std::string_view mentions;
};

TEST(AlgorithmSetting, NamesWhatIsWrongAndWhatThereIs) {
  constexpr Wrong kWrong[] = {
      {"rings", "two_level"},
      {"all_reduce=tree", "binomial_tree"},
      {"allreduce=ring", "reduce_scatter"},
      {"barrier=ring", "Use one of auto, direct"},
      {"ring,", "comma"},
      {",ring", "no algorithm is named \"\""},
      {"ring,,direct", "no algorithm is named \"\""},
      {"ring,direct", "a second time"},
      {"barrier=direct,barrier=auto", "a second time"},
      {"barrier=", "no algorithm is named \"\""},
      {"=ring", "no collective is named \"\""},
      {"barrier=direct=auto", "no algorithm is named \"direct=auto\""},
      {"Ring", "no algorithm is named \"Ring\""},
  };
  for (const Wrong& wrong : kWrong) {
    const Result<AlgorithmSetting> setting = AlgorithmSetting::parse(wrong.text);
    ASSERT_FALSE(setting) << wrong.text;
    EXPECT_EQ(setting.error().code(), ErrorCode::malformed) << wrong.text;
    EXPECT_NE(setting.error().message().find(wrong.mentions), std::string::npos) << setting.error().message();
  }
}

}  // namespace
}  // namespace weft::collectives::select
