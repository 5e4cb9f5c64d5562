#include "tools/bench/statistics.h"

#include <gtest/gtest.h>

#include "tools/bench/table.h"

namespace weft::tools {
namespace {

using collectives::Collective;

TEST(BenchStatistics, MedianAndNearestRank) {
  const Times odd = times_of({3000, 1000, 2000});
  EXPECT_EQ(odd.median_us, 2);
  EXPECT_EQ(odd.p99_us, 3);
  EXPECT_EQ(odd.min_us, 1);
  EXPECT_EQ(times_of({1000, 2000, 4000, 3000}).median_us, 2.5);
  EXPECT_EQ(times_of({5000}).p99_us, 5);
  std::vector<double> many;
  for (int i = 1; i <= 200; ++i) many.push_back(i * 1000.0);
  EXPECT_EQ(times_of(many).p99_us, 198) << "two of 200 are above";
}

TEST(BenchStatistics, IterationsFitTheBudgetWithinBounds) {
  using namespace std::chrono_literals;
  EXPECT_EQ(iterations_for(1e6, 250ms), 250U);
  EXPECT_EQ(iterations_for(1e9, 250ms), 5U);
  EXPECT_EQ(iterations_for(0, 250ms), 20'000U);
}

TEST(BenchStatistics, SizesAreOfTheLargerBuffer) {
  EXPECT_EQ(block_count(Collective::all_reduce, 1024, 4, 4), 256U);
  EXPECT_EQ(block_count(Collective::all_gather, 1024, 4, 4), 64U);
  EXPECT_EQ(block_count(Collective::all_to_all, 8, 4, 4), 1U) << "at least an element";
  EXPECT_EQ(block_count(Collective::barrier, 1024, 4, 4), 0U);
  EXPECT_EQ(message_bytes(Collective::all_to_all, 1, 4, 4), 16U);
  EXPECT_EQ(message_bytes(Collective::broadcast, 7, 8, 4), 56U);
}

TEST(BenchStatistics, BusFactorsAreThoseOfTheHelpText) {
  for (const std::uint32_t n : {2U, 3U, 5U}) {
    const double share = (n - 1.0) / n;
    EXPECT_DOUBLE_EQ(bus_factor(Collective::all_reduce, n), 2 * share);
    for (const auto c : {Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all, Collective::gather,
                         Collective::scatter}) {
      EXPECT_DOUBLE_EQ(bus_factor(c, n), share);
    }
    EXPECT_DOUBLE_EQ(bus_factor(Collective::broadcast, n), 1);
    EXPECT_DOUBLE_EQ(bus_factor(Collective::reduce, n), 1);
    EXPECT_EQ(bus_factor(Collective::barrier, n), 0);
  }
  EXPECT_EQ(bus_factor(Collective::all_reduce, 1), 0);
}

TEST(BenchTable, ARowSaysWhatWasMeasured) {
  const Measurement measured = measurement_of({{10, 20, 5}, 100, 3}, 1'000'000, 1.5);
  EXPECT_DOUBLE_EQ(measured.algbw_gbs, 100);
  EXPECT_DOUBLE_EQ(measured.busbw_gbs, 150);
  TableRow row;
  row.size_bytes = 1'000'000;
  row.in_place = measured;
  const std::string text = table_row(row);
  for (const char* part : {"1000000", "10.00", "20.00", "100.000", "150.000", " 3", " - "}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
  row.has_busbw = false;
  row.is_checked = false;
  EXPECT_NE(table_row(row).find("n/a"), std::string::npos);
  EXPECT_EQ(table_row(row).find("150.000"), std::string::npos);
}

TEST(BenchTable, ColumnsStandBelowTheirNames) {
  const std::string head = table_head();
  TableRow row;
  row.out_of_place = row.in_place = Measurement{};
  EXPECT_EQ(table_row(row).size(), head.size() - head.rfind('\n') - 1);
}

}  // namespace
}  // namespace weft::tools
