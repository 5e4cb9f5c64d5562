// Two ranks: latency, and bandwidth one way and both ways.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "tools/bench/context.h"
#include "tools/bench/measure.h"
#include "tools/bench/table.h"

namespace weft::tools {
namespace {

enum class Exchange : std::uint8_t { ping_pong, one_way, both_ways };

const char* name_of(Exchange exchange) {
  switch (exchange) {
    case Exchange::ping_pong: return "send_recv";
    case Exchange::one_way: return "send_recv_one_way";
    case Exchange::both_ways: return "send_recv_both_ways";
  }
  return "";
}

/// Messages under way at a time: enough to fill a link, bounded in memory.
constexpr std::size_t kWindowMax = 16;
constexpr std::uint64_t kWindowBytes = 64U << 20;

std::size_t window_for(Exchange exchange, std::uint64_t size_bytes) {
  if (exchange == Exchange::ping_pong) return 1;
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(kWindowBytes / size_bytes, 1, kWindowMax));
}

/// The two ranks of a pair as a communicator of their own; empty on all other ranks.
class PairCommunicator {
 public:
  static Result<PairCommunicator> create(const BenchContext& context, std::uint32_t first, std::uint32_t second) {
    const bool is_member = context.rank == first || context.rank == second;
    weft_communicator_t* communicator = nullptr;
    WEFT_TRY(
        checked(weft_split(context.communicator, is_member ? 0 : -1, context.rank == first ? 0 : 1, &communicator)));
    return PairCommunicator{communicator};
  }
  PairCommunicator(PairCommunicator&& other) noexcept : communicator_(std::exchange(other.communicator_, nullptr)) {}
  PairCommunicator& operator=(PairCommunicator&&) = delete;
  ~PairCommunicator() { weft_destroy(communicator_); }
  [[nodiscard]] weft_communicator_t* get() const noexcept { return communicator_; }

 private:
  explicit PairCommunicator(weft_communicator_t* communicator) : communicator_(communicator) {}
  weft_communicator_t* communicator_;
};

/// One iteration, at both ranks of a pair.
class Exchanger {
 public:
  Exchanger(weft_communicator_t* pair, const BenchMemory& memory, Exchange exchange, std::uint64_t size_bytes)
      : pair_(pair),
        memory_(memory),
        exchange_(exchange),
        size_(size_bytes),
        window_(window_for(exchange, size_bytes)) {}

  [[nodiscard]] std::size_t window() const noexcept { return window_; }

  weft_status_t run() {
    const bool is_first = weft_rank(pair_) == 0;
    if (exchange_ == Exchange::ping_pong) {
      const weft_status_t status = is_first ? send(0) : receive(0);
      if (status != WEFT_SUCCESS) return status;
      return is_first ? receive(0) : send(0);
    }
    const bool sends = is_first || exchange_ == Exchange::both_ways;
    const bool receives = !is_first || exchange_ == Exchange::both_ways;
    weft_group_begin();
    weft_status_t status = WEFT_SUCCESS;
    for (std::size_t i = 0; i < window_ && status == WEFT_SUCCESS; ++i) {
      if (receives) status = receive(i);
      if (sends && status == WEFT_SUCCESS) status = send(i);
    }
    const weft_status_t ended = weft_group_end();
    if (status != WEFT_SUCCESS || ended != WEFT_SUCCESS || exchange_ == Exchange::both_ways) {
      return status != WEFT_SUCCESS ? status : ended;
    }
    // A send may be complete before its data arrived: the answer says that all of it did.
    std::byte answer{};
    return is_first ? weft_receive(pair_, &answer, 1, WEFT_U8, 1) : weft_send(pair_, &answer, 1, WEFT_U8, 0);
  }

  Result<std::uint64_t> check() {
    const Pattern pattern{device::DataType::u8, std::nullopt, 2};
    const std::uint32_t own = weft_rank(pair_);
    for (std::size_t i = 0; i < window_; ++i) pattern.fill(memory_.send() + i * size_, own, i, size_);
    std::memset(memory_.receive(), 0x5a, window_ * size_);
    WEFT_TRY(checked(weft_barrier(pair_)));
    WEFT_TRY(checked(run()));
    std::uint64_t wrong = 0;
    if (own == 1 || exchange_ != Exchange::one_way) {
      for (std::size_t i = 0; i < window_; ++i) {
        wrong += pattern.count_wrong_moved(memory_.receive() + i * size_, 1 - own, i, size_);
      }
    }
    WEFT_TRY(checked(weft_barrier(pair_)));
    return wrong;
  }

 private:
  weft_status_t send(std::size_t i) {
    return weft_send(pair_, memory_.send() + i * size_, size_, WEFT_U8, 1 - weft_rank(pair_));
  }
  weft_status_t receive(std::size_t i) {
    return weft_receive(pair_, memory_.receive() + i * size_, size_, WEFT_U8, 1 - weft_rank(pair_));
  }

  weft_communicator_t* pair_;
  const BenchMemory& memory_;
  Exchange exchange_;
  std::uint64_t size_;
  std::size_t window_;
};

/// On all ranks, what the pair measured.
Result<Measurement> measure_pair(BenchContext& context, const PairCommunicator& pair, const BenchMemory& memory,
                                 Exchange exchange, std::uint64_t size) {
  std::array<double, 5> shared{};
  if (pair.get() != nullptr) {
    Exchanger exchanger{pair.get(), memory, exchange, size};
    std::uint64_t wrong = 0;
    if (context.options.is_checked) {
      WEFT_TRY_ASSIGN(wrong, exchanger.check());
    }
    WEFT_TRY_ASSIGN(const Measured measured, time_calls(pair.get(), context.options, [&] { return exchanger.run(); }));
    if (context.options.is_checked) {
      WEFT_TRY_ASSIGN(const std::uint64_t later, exchanger.check());
      wrong += later;
    }
    WEFT_TRY_ASSIGN(wrong, sum_over_ranks(pair.get(), wrong));
    // Time of one message: half a round trip, or its share of a window.
    const double messages = exchange == Exchange::ping_pong ? 2 : static_cast<double>(exchanger.window());
    shared = {measured.times.median_us / messages, measured.times.p99_us / messages, measured.times.min_us / messages,
              static_cast<double>(measured.iterations), static_cast<double>(wrong)};
  }
  WEFT_TRY(
      checked(weft_all_reduce(context.communicator, shared.data(), shared.data(), shared.size(), WEFT_F64, WEFT_MAX)));
  Measured result{
      {shared[0], shared[1], shared[2]}, static_cast<std::uint64_t>(shared[3]), static_cast<std::uint64_t>(shared[4])};
  Measurement measurement = measurement_of(result, size, 1);
  if (exchange == Exchange::both_ways) {  // Both directions together.
    measurement.algbw_gbs *= 2;
    measurement.busbw_gbs *= 2;
  }
  context.wrong += measurement.wrong;
  context.best_busbw = std::max(context.best_busbw, measurement.busbw_gbs);
  return measurement;
}

std::uint64_t memory_for(std::uint64_t size) { return std::max(size * window_for(Exchange::one_way, size), size); }

Status run_curves(BenchContext& context, const BenchMemory& memory) {
  WEFT_TRY_ASSIGN(const PairCommunicator pair, PairCommunicator::create(context, 0, 1));
  for (const Exchange exchange : {Exchange::ping_pong, Exchange::one_way, Exchange::both_ways}) {
    if (exchange != Exchange::ping_pong && context.options.subject == Subject::ping_pong) break;
    context.say("#\n# {}, ranks 0 and 1: {}", name_of(exchange),
                exchange == Exchange::ping_pong ? "half of a round trip"
                : exchange == Exchange::one_way ? "time per message, up to 16 under way, 64 MiB at most"
                                                : "as one_way in both directions; bandwidth of both together");
    context.say("{}", table_head());
    Series series{name_of(exchange), false, {}};
    for (const std::uint64_t size : sizes_of(context.options)) {
      WEFT_TRY_ASSIGN(const Measurement measurement, measure_pair(context, pair, memory, exchange, size));
      TableRow row{size, size, "uint8", "none", "-1", true, context.options.is_checked, measurement, std::nullopt};
      context.say("{}", table_row(row));
      series.measurements.push_back(measurement);
    }
    context.report.series.push_back(std::move(series));
  }
  return {};
}

/// Latency of the smallest and bandwidth of the largest message between all pairs, as two matrices.
Status run_matrix(BenchContext& context, const BenchMemory& memory) {
  const std::uint32_t n = context.ranks;
  struct Cell {
    double latency_us = 0;
    double bandwidth_gbs = 0;
  };
  std::vector<Cell> cells(static_cast<std::size_t>(n) * n);
  for (std::uint32_t a = 0; a < n; ++a) {
    for (std::uint32_t b = a + 1; b < n; ++b) {
      WEFT_TRY_ASSIGN(const PairCommunicator pair, PairCommunicator::create(context, a, b));
      WEFT_TRY_ASSIGN(const Measurement small,
                      measure_pair(context, pair, memory, Exchange::ping_pong, context.options.begin_bytes));
      WEFT_TRY_ASSIGN(const Measurement large,
                      measure_pair(context, pair, memory, Exchange::one_way, context.options.end_bytes));
      cells[a * n + b] = cells[b * n + a] = {small.median_us, large.algbw_gbs};
      context.report.notes.push_back(fmt::format("ranks {}-{}: {} bytes in {:.2f} us, {} bytes at {:.2f} GB/s", a, b,
                                                 context.options.begin_bytes, small.median_us,
                                                 context.options.end_bytes, large.algbw_gbs));
    }
  }
  for (const bool is_latency : {true, false}) {
    context.say("#\n# {}", is_latency ? fmt::format("half of a round trip of {} bytes, us", context.options.begin_bytes)
                                      : fmt::format("one way, messages of {} bytes, GB/s (lower rank sends)",
                                                    context.options.end_bytes));
    std::string head = "#   rank";
    for (std::uint32_t b = 0; b < n; ++b) head += fmt::format(" {:>9}", b);
    context.say("{}", head);
    for (std::uint32_t a = 0; a < n; ++a) {
      std::string line = fmt::format(" {:>7}", a);
      for (std::uint32_t b = 0; b < n; ++b) {
        const Cell& cell = cells[a * n + b];
        line += a == b ? fmt::format(" {:>9}", "-")
                       : fmt::format(" {:>9.2f}", is_latency ? cell.latency_us : cell.bandwidth_gbs);
      }
      context.say("{}", line);
    }
  }
  return {};
}

}  // namespace

Status bench_point_to_point(BenchContext& context) {
  std::uint64_t largest = memory_for(context.options.end_bytes);  // Which the sweep may not hit.
  for (const std::uint64_t size : sizes_of(context.options)) largest = std::max(largest, memory_for(size));
  WEFT_TRY_ASSIGN(const BenchMemory memory, BenchMemory::create(context.options.memory, largest));
  return context.options.wants_pairs ? run_matrix(context, memory) : run_curves(context, memory);
}

}  // namespace weft::tools
