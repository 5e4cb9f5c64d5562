#include "base/trace.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace weft {
namespace {

using namespace std::chrono_literals;

class HandClock final : public Clock {
 public:
  [[nodiscard]] Nanos now() const noexcept override { return time; }
  Nanos time{0};
};

class TraceTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "weft_trace_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
  static std::string content(const std::string& file) {
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }
  static std::size_t count_of(const std::string& text, const std::string& part) {
    std::size_t count = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
  }

  HandClock clock_;
  std::filesystem::path folder_;
};

TEST_F(TraceTest, WritesCompleteEventsThatViewersRead) {
  Trace trace =
      Trace::create({.path = path("trace.%r.json"), .rank = Rank{3}, .ranks = RankCount{8}, .clock = &clock_}).value();
  EXPECT_EQ(trace.path(), path("trace.3.json"));
  clock_.time = 1'234'567ns;
  {
    TraceSpan span(trace, "send", 2);
    span.argument("bytes", 4096);
    span.argument("peer", 1);
    clock_.time += 1500ns;
  }
  trace.record({.name = "reduce", .lane = 0, .begin = 2us, .end = 2001ns});
  ASSERT_TRUE(trace.close());
  EXPECT_EQ(content(path("trace.3.json")),
            "{\"displayTimeUnit\": \"ns\", \"otherData\": {\"dropped_events\": 0}, \"traceEvents\": [\n"
            "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 3, \"tid\": 0, \"args\": {\"name\": \"rank 3\"}},\n"
            "{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": 3, \"tid\": 0, \"args\": {\"name\": \"lane 0\"}},\n"
            "{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": 3, \"tid\": 2, \"args\": {\"name\": \"lane 2\"}},\n"
            "{\"ph\": \"X\", \"name\": \"send\", \"pid\": 3, \"tid\": 2, \"ts\": 1234.567, \"dur\": 1.500, "
            "\"args\": {\"bytes\": 4096, \"peer\": 1}},\n"
            "{\"ph\": \"X\", \"name\": \"reduce\", \"pid\": 3, \"tid\": 0, \"ts\": 2.000, \"dur\": 0.001, "
            "\"args\": {}}\n"
            "]}\n");
}

TEST_F(TraceTest, EscapesNamesThatAreMadeAtRunTime) {
  Trace trace = Trace::create({.path = path("t.json"), .clock = &clock_}).value();
  const std::string_view name = trace.keep(std::string("a\"b\\\n\xff"));
  EXPECT_EQ(trace.keep("a\"b\\\n\xff").data(), name.data()) << "equal texts share one copy";
  trace.record({.name = name});
  ASSERT_TRUE(trace.close());
  EXPECT_NE(content(path("t.json")).find("\"name\": \"a\\\"b\\\\\\n\\ufffd\""), std::string::npos);
}

TEST_F(TraceTest, AFullRingKeepsTheNewestEventsAndSaysHowManyAreGone) {
  Trace trace = Trace::create({.path = path("t.json"), .max_events = 3, .clock = &clock_}).value();
  for (int i = 0; i < 10; ++i) trace.record({.name = "step", .begin = Nanos(i * 1000), .end = Nanos(i * 1000)});
  ASSERT_TRUE(trace.close());
  const std::string text = content(path("t.json"));
  EXPECT_EQ(count_of(text, "\"ph\": \"X\""), 3U);
  EXPECT_NE(text.find("\"dropped_events\": 7"), std::string::npos);
  EXPECT_LT(text.find("\"ts\": 7.000"), text.find("\"ts\": 8.000"));
  EXPECT_LT(text.find("\"ts\": 8.000"), text.find("\"ts\": 9.000"));
  EXPECT_EQ(text.find("\"ts\": 6.000"), std::string::npos);
}

TEST_F(TraceTest, ManyEventsAreAllWritten) {
  Trace trace = Trace::create({.path = path("t.json"), .max_events = 5000, .clock = &clock_}).value();
  for (int i = 0; i < 5000; ++i) trace.record({.name = "step"});
  ASSERT_TRUE(trace.close());
  const std::string text = content(path("t.json"));
  EXPECT_EQ(count_of(text, "\"ph\": \"X\""), 5000U);
  EXPECT_TRUE(text.ends_with("}\n]}\n"));
}

TEST_F(TraceTest, RanksAndTracesNeverShareAFile) {
  const Trace::Options options{.path = path("t.json"), .rank = Rank{1}, .ranks = RankCount{2}, .clock = &clock_};
  Trace first = Trace::create(options).value();
  Trace second = Trace::create(options).value();
  EXPECT_EQ(first.path(), path("t.json.1"));
  EXPECT_EQ(second.path(), path("t.json.1.2"));
}

TEST_F(TraceTest, ArgumentsBeyondTheLimitAreLeftOut) {
  Trace trace = Trace::create({.path = path("t.json"), .clock = &clock_}).value();
  {
    TraceSpan span(trace, "wide", 0);
    for (int i = 0; i < 10; ++i) span.argument("key", 1);
  }
  trace.record({.name = "wrong", .num_arguments = 1000});
  ASSERT_TRUE(trace.close());
  EXPECT_EQ(count_of(content(path("t.json")), "\"key\": 1"), TraceEvent::kMaxArguments);
}

TEST_F(TraceTest, DisabledRecordsNothingAndNeverReadsTheClock) {
  Trace trace;
  EXPECT_FALSE(trace.is_enabled());
  EXPECT_EQ(trace.now(), 0ns);
  { TraceSpan span(trace, "send", 0); }
  trace.record({.name = "send"});
  EXPECT_EQ(trace.keep("x"), "");
  EXPECT_EQ(trace.path(), "");
  EXPECT_TRUE(trace.close());
}

TEST_F(TraceTest, ClosingTwiceAndDestroyingWriteOnce) {
  {
    Trace trace = Trace::create({.path = path("t.json"), .clock = &clock_}).value();
    trace.record({.name = "step"});
    Trace moved = std::move(trace);
    EXPECT_TRUE(moved.is_enabled());
  }
  EXPECT_EQ(count_of(content(path("t.json")), "\"ph\": \"X\""), 1U);
}

TEST_F(TraceTest, AWrongPathIsKnownAtTheStart) {
  const auto trace = Trace::create({.path = path("missing/t.json"), .clock = &clock_});
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().code(), ErrorCode::system);
  EXPECT_EQ(trace.error().system_errno(), ENOENT);
  EXPECT_NE(trace.error().message().find("WEFT_TRACE_FILE"), std::string::npos);
  EXPECT_FALSE(Trace::create({.path = path("t.json"), .max_events = 0}));
}

TEST_F(TraceTest, AFullDiskIsAnError) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "this machine has no /dev/full";
  Trace trace = Trace::create({.path = "/dev/full", .clock = &clock_}).value();
  const Status closed = trace.close();
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().system_errno(), ENOSPC);
}

}  // namespace
}  // namespace weft
