#include <gtest/gtest.h>

#include "tools/run/job.h"
#include "tools/run/line_tagger.h"
#include "tools/run/placement.h"

namespace weft::tools {
namespace {

TEST(LineTagger, OnlyWholeLinesLeave) {
  LineTagger tagger{"[1] "};
  EXPECT_EQ(tagger.feed("one"), "");
  EXPECT_EQ(tagger.feed(" line\ntwo\nth"), "[1] one line\n[1] two\n");
  EXPECT_EQ(tagger.feed("\n\n"), "[1] th\n[1] \n");
  EXPECT_EQ(tagger.finish(), "");
}

TEST(LineTagger, WhatIsLeftAtTheEndGetsANewline) {
  LineTagger tagger{"[0] "};
  EXPECT_EQ(tagger.feed("no newline"), "");
  EXPECT_EQ(tagger.finish(), "[0] no newline\n");
  EXPECT_EQ(tagger.finish(), "");
}

TEST(LineTagger, ALineWithoutEndIsCut) {
  LineTagger tagger{""};
  const std::string text(LineTagger::kLineMax * 2 + 5, 'x');
  EXPECT_EQ(tagger.feed(text).size(), 2 * (LineTagger::kLineMax + 1));
  EXPECT_EQ(tagger.finish(), "xxxxx\n");
}

TEST(LineTagger, ALineOfJustTheLimitIsOneLine) {
  LineTagger tagger{""};
  const std::string text(LineTagger::kLineMax, 'x');
  EXPECT_EQ(tagger.feed(text + "\n"), text + "\n");
}

TEST(LineTagger, AnyBytesPass) {
  LineTagger tagger{">"};
  using namespace std::string_literals;
  EXPECT_EQ(tagger.feed("a\0b\xff\r\n"s), ">a\0b\xff\r\n"s);
}

TEST(Placement, NeighboursShareAHost) {
  const auto places = place_ranks(5, 2);
  ASSERT_EQ(places.size(), 5U);
  EXPECT_EQ(places[2].host, 0U);
  EXPECT_EQ(places[2].local_rank, 2U);
  EXPECT_EQ(places[2].local_size, 3U);
  EXPECT_EQ(places[3].host, 1U);
  EXPECT_EQ(places[3].local_rank, 0U);
  EXPECT_EQ(places[4].local_size, 2U);
}

TEST(Placement, TestHostsAreReadOrRefused) {
  const auto hosts = parse_test_hosts("wefthost0=10.231.77.1=41 wefthost1=10.231.77.2=42");
  ASSERT_TRUE(hosts);
  ASSERT_EQ(hosts->size(), 2U);
  EXPECT_EQ((*hosts)[1].address, "10.231.77.2");
  EXPECT_EQ((*hosts)[1].holder_pid, 42U);
  EXPECT_TRUE(parse_test_hosts("")->empty());
  for (const char* wrong : {"a", "a=b", "a=b=", "a=b=c", "a=b=0", "a=b=1x", "a=b=1=2", "a=b=-1"}) {
    EXPECT_FALSE(parse_test_hosts(wrong)) << wrong;
  }
}

TEST(Placement, ProgramsAreFoundAsTheShellDoes) {
  EXPECT_EQ(find_program("sh", "/nowhere:/bin").value(), "/bin/sh");
  EXPECT_EQ(find_program("/bin/sh", "").value(), "/bin/sh");
  EXPECT_EQ(find_program("weft-no-such-program", "/bin").error().code(), ErrorCode::not_found);
  EXPECT_EQ(find_program("", "/bin").error().code(), ErrorCode::not_found);
  EXPECT_EQ(find_program("/tmp", "").error().code(), ErrorCode::system) << "a folder";
  EXPECT_EQ(find_program("/etc/passwd", "").error().code(), ErrorCode::system) << "not executable";
}

TEST(Placement, TheEnvironmentIsMerged) {
  char kept[] = "KEPT=1";
  char replaced[] = "WEFT_RANK=9";
  char removed[] = "WEFT_SECRET_FILE=x";
  char* environment[] = {kept, replaced, removed, nullptr};
  EXPECT_EQ(merged_environment(environment, {"WEFT_RANK=0"}, {"WEFT_SECRET_FILE"}),
            (std::vector<std::string>{"KEPT=1", "WEFT_RANK=0"}));
}

TEST(JobOptions, NonsenseIsRefused) {
  JobOptions options;
  EXPECT_FALSE(check(options)) << "no command";
  options.command = {"true"};
  EXPECT_TRUE(check(options));
  options.ranks = 0;
  EXPECT_FALSE(check(options));
  options.ranks = 2;
  options.hosts = 3;
  EXPECT_FALSE(check(options));
  options.hosts = 0;
  EXPECT_FALSE(check(options));
  options.hosts = 2;
  options.timeout = Nanos::zero();
  EXPECT_FALSE(check(options));
}

}  // namespace
}  // namespace weft::tools
