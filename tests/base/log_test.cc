#include "base/log.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

namespace weft {
namespace {

class Log : public testing::Test {
 protected:
  void SetUp() override { before_ = log::level(); }
  void TearDown() override {
    log::set_level(before_);
    log::set_prefix("");
  }

  template <class Write>
  static std::string written_by(Write&& write) {
    testing::internal::CaptureStderr();
    write();
    return testing::internal::GetCapturedStderr();
  }

 private:
  log::Level before_ = log::Level::warning;
};

TEST_F(Log, WritesLinesAtOrAboveTheLevel) {
  log::set_level(log::Level::info);
  const std::string text = written_by([] {
    log::debug("one");
    log::info("two {}", 2);
    log::warning("three");
    log::error("four");
  });
  EXPECT_EQ(text, "weft I two 2\nweft W three\nweft E four\n");
}

TEST_F(Log, OffWritesNothing) {
  log::set_level(log::Level::off);
  EXPECT_EQ(written_by([] { log::error("lost"); }), "");
}

TEST_F(Log, OneEventIsOneLine) {
  log::set_level(log::Level::warning);
  const std::string text = written_by([] { log::warning("a {}", "b\nc\r\x1b[31m\x7f"); });
  EXPECT_EQ(text, "weft W a b\\x0ac\\x0d\\x1b[31m\\x7f\n");
}

TEST_F(Log, FormatCharactersInAValueAreText) {
  const std::string text = written_by([] { log::error("{}", "%n%s{}{0}"); });
  EXPECT_EQ(text, "weft E %n%s{}{0}\n");
}

TEST_F(Log, LongLinesStayWhole) {
  const std::string text = written_by([] { log::error("{}", std::string(131000, 'x')); });
  EXPECT_EQ(text.size(), std::string("weft E \n").size() + 131000);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST_F(Log, ThePrefixIsInFrontOfEveryLine) {
  log::set_prefix("rank 3");
  EXPECT_EQ(written_by([] { log::error("gone"); }), "weft E [rank 3] gone\n");
}

}  // namespace
}  // namespace weft
