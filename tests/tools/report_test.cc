#include "tools/report/report.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <regex>

#include "tools/report/html.h"
#include "tools/report/plot.h"

namespace weft::tools {
namespace {

namespace json = boost::json;

constexpr const char* kHostile = "<script>alert(1)</script>\" onload='x' &amp; \xFF\x01";

Report example() {
  Report report;
  report.title = "Weft bench: all_reduce";
  report.commit = "0123abc";
  report.started_at = "2026-01-01 12:00 UTC";
  report.data_type = "float";
  report.reduction = "sum";
  report.ranks = 4;
  report.warm_ups = 5;
  report.is_verified = true;
  report.machine = {{"processor", "2 x EPYC"}, {"memory", "24 GiB"}, {"kernel", "6.1"}};
  report.hosts = {{"wefthost0", {0, 1}}, {"wefthost1", {2, 3}}};
  report.pairs = {{0, 1, "shm", "same host, proven by a probe"}, {0, 2, "tcp", "no RDMA device on wefthost1"}};
  report.algorithms = {{"all_reduce", 8, 65536, "direct", "fewest steps"},
                       {"all_reduce", 131072, 67108864, "ring", ""}};
  for (const bool in_place : {false, true}) {
    Series series{"all_reduce", in_place, {}};
    for (std::uint64_t bytes = 8; bytes <= (64U << 20); bytes *= 4) {
      const auto size = static_cast<double>(bytes);
      const double us = (in_place ? 0.3 : 0.4) + size / 9000 + size * size / 4e12;
      series.measurements.push_back({bytes, 1000, us, us * 1.6, us * 0.9, size / us / 1e3, 1.5 * size / us / 1e3, 0});
    }
    report.series.push_back(series);
  }
  report.limits = {{"memcpy", "64 MiB", 11.2, std::nullopt},
                   {"mapped reduction", "two processes", 12.1, 0.07},
                   {"loopback TCP", "blocking sockets", 2.3, 6.8}};
  WorkloadRun run{"resnet50", 9200, 11000, {}};
  for (int i = 0; i < 5; ++i) {
    run.steps.push_back({"bucket " + std::to_string(i) + ": layer4.2.conv3.weight .. layer4.1.bn2.bias", "all_reduce",
                         8196000U + 4000000U * static_cast<unsigned>(i), 900.0 + 350 * i, 1300.0 + 400 * i});
  }
  report.workloads = {run};
  report.notes = {"2 ranks share a core on no host."};
  return report;
}

/// The same report with `text` wherever a text may stand.
Report example_of(const std::string& text) {
  Report report = example();
  report.title = report.commit = report.started_at = report.data_type = report.reduction = text;
  report.machine = {{text, text}};
  report.hosts = {{text, {0}}};
  report.pairs = {{0, 1, text, text}};
  report.algorithms = {{text, 1, 2, text, text}};
  report.limits = {{text, text, 1.0, 2.0}};
  for (Series& series : report.series) series.collective = text;
  report.workloads = {{text, 1, 2, {{text, text, 8, 1, 2}}}};
  report.notes = {text};
  return report;
}

std::size_t occurrences(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(Labels, AreShort) {
  EXPECT_EQ(size_label(8), "8");
  EXPECT_EQ(size_label(65536), "64K");
  EXPECT_EQ(size_label(8196000), "7.8M");
  EXPECT_EQ(time_label(0.118), "0.12 µs");
  EXPECT_EQ(time_label(18311.27), "18.3 ms");
  EXPECT_EQ(time_label(std::numeric_limits<double>::quiet_NaN()), "–");
  EXPECT_EQ(number_label(12.345), "12.3");
}

TEST(RenderHtml, ShowsWhatWasMeasured) {
  const std::string page = render_html(example());
  for (const char* expected : {"wefthost1", "no RDMA device on wefthost1", "2 x EPYC", "resnet50", "mapped reduction",
                               "bucket 4", "0123abc", "ranks on 2 hosts", "all right", "in place"}) {
    EXPECT_NE(page.find(expected), std::string::npos) << expected;
  }
  EXPECT_EQ(occurrences(page, "<svg"), 2U);
  EXPECT_EQ(occurrences(page, "class=\"target\""), 4U * 12);  // Two plots, two series, twelve sizes.
  EXPECT_EQ(occurrences(page, "class=\"limit\""), 3U + 2);    // Three have a bandwidth, two a latency.
  if (const char* path = std::getenv("WEFT_TEST_REPORT_OUT"); path != nullptr) std::ofstream(path) << page;
}

TEST(RenderHtml, LoadsNothingFromElsewhere) {
  const std::string page = render_html(example());
  EXPECT_FALSE(std::regex_search(page, std::regex("https?://|src=|@import|url\\(|<link")));
}

TEST(RenderHtml, CannotBeMadeToRunForeignScript) {
  const std::string page = render_html(example_of(kHostile));
  EXPECT_EQ(occurrences(page, "<script"), 1U);
  EXPECT_EQ(occurrences(page, "</script"), 1U);
  EXPECT_EQ(page.find("alert(1)</"), std::string::npos);
  EXPECT_EQ(page.find("\" onload"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
  EXPECT_EQ(page.find('\xFF'), std::string::npos);
  EXPECT_EQ(page.find('\x01'), std::string::npos);
}

TEST(RenderHtml, SaysWrongLoudly) {
  Report report = example();
  report.series[0].measurements[3].wrong = 17;
  const std::string page = render_html(report);
  EXPECT_NE(page.find("WRONG VALUES"), std::string::npos);
  EXPECT_NE(page.find("<td class=\"n bad\">17</td>"), std::string::npos);
  report.is_verified = false;
  EXPECT_NE(render_html(report).find("not checked"), std::string::npos);
}

TEST(RenderHtml, SurvivesNumbersThatAreNone) {
  Report report = example();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  report.series[0].measurements[0] = {8, 0, nan, nan, nan, -nan, std::numeric_limits<double>::infinity(), 0};
  report.series[0].measurements[1] = {0, 0, 0, 0, 0, 0, 0, 0};
  const std::string page = render_html(report);
  EXPECT_FALSE(std::regex_search(page, std::regex("[\" ,](nan|inf|-nan|-inf)[\" ,]")));
  EXPECT_NE(render_html(Report{}).find("</html>"), std::string::npos);
}

TEST(RenderSvg, SaysThatNothingWasMeasured) {
  EXPECT_NE(render_svg({"t", "y", Scale::linear, {{"none", {}}}, {{"limit", 3}}}).find("Nothing was measured"),
            std::string::npos);
}

TEST(RenderSvg, DrawsAPointAlone) {
  const std::string svg = render_svg({"t", "y", Scale::logarithmic, {{"one", {{8, 1, 1, 1, "h"}}}}, {}});
  EXPECT_EQ(occurrences(svg, "class=\"target\""), 1U);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(ToJson, FollowsTheSchema) {
  json::error_code error;
  const json::value document = json::parse(to_json(example()), error);
  ASSERT_FALSE(error) << error.message() << to_json(example());
  const json::object& root = document.as_object();
  EXPECT_EQ(root.at("schema"), "weft-results-1");
  EXPECT_EQ(root.at("ranks"), 4);
  EXPECT_EQ(root.at("verified"), true);
  EXPECT_EQ(root.at("hosts").as_array()[1].at("ranks"), (json::array{2, 3}));
  const json::array& results = root.at("results").as_array();
  ASSERT_EQ(results.size(), 24U);
  EXPECT_EQ(results[0].at("collective"), "all_reduce");
  EXPECT_EQ(results[0].at("in_place"), false);
  EXPECT_EQ(results[23].at("in_place"), true);
  EXPECT_EQ(results[23].at("bytes"), 33554432);
  EXPECT_NEAR(results[0].at("median_us").to_number<double>(), 0.4009, 1e-4);
  EXPECT_TRUE(root.at("limits").as_array()[0].at("latency_us").is_null());
  EXPECT_EQ(root.at("workloads").as_array()[0].at("steps").as_array().size(), 5U);
}

TEST(ToJson, EscapesHostileTextAndNumbersThatAreNone) {
  Report report = example_of(kHostile);
  report.series[0].measurements[0].busbw_gbs = std::numeric_limits<double>::infinity();
  json::error_code error;
  const json::value document = json::parse(to_json(report), error);
  ASSERT_FALSE(error) << error.message();
  EXPECT_TRUE(document.at("results").as_array()[0].at("busbw_gbs").is_null());
  const std::string host(document.at("hosts").as_array()[0].at("name").as_string());
  EXPECT_TRUE(host.starts_with("<script>alert(1)</script>\" onload='x' &amp; ")) << host;
  json::parse(to_json(Report{}), error);
  EXPECT_FALSE(error);
}

}  // namespace
}  // namespace weft::tools
