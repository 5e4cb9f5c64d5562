// What the engine itself costs: links that deliver at once, ranks in one thread. Not the time of any real call.
#include <benchmark/benchmark.h>

#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "base/check.h"
#include "collectives/algorithms/algorithm.h"
#include "collectives/engine/engine.h"
#include "collectives/program_cache.h"
#include "device/device.h"

namespace weft::collectives::engine {
namespace {

constexpr std::size_t kMessageMax = 512;

/// Messages of one ordered pair, in a ring that never grows.
class NullLink final : public transport::Endpoint {
 public:
  NullLink(Rank from, Rank to) : from_(from), to_(to) {
    capabilities_.message_size_max = kMessageMax;
    capabilities_.eager_limit = kMessageMax;
  }
  [[nodiscard]] Rank peer() const noexcept override { return to_; }
  [[nodiscard]] const transport::Capabilities& capabilities() const noexcept override { return capabilities_; }
  Result<transport::Posted> post_message(std::span<const std::byte> header,
                                         std::span<const std::byte> payload) noexcept override {
    if (head_ - tail_ == kSlots) return transport::Posted::again;
    Slot& slot = slots_[head_++ % kSlots];
    std::memcpy(slot.bytes, header.data(), header.size());
    if (!payload.empty()) std::memcpy(slot.bytes + header.size(), payload.data(), payload.size());
    slot.size = header.size() + payload.size();
    return transport::Posted::started;
  }
  Result<transport::Posted> post_write(transport::LocalSlice, transport::RemoteSlice, std::optional<std::uint32_t>,
                                       transport::Token) noexcept override {
    return Error{ErrorCode::unsupported, "null"};
  }
  Result<transport::Posted> post_read(transport::LocalSlice, transport::RemoteSlice,
                                      transport::Token) noexcept override {
    return Error{ErrorCode::unsupported, "null"};
  }
  Result<std::byte*> load_pointer(transport::RemoteSlice) noexcept override {
    return Error{ErrorCode::unsupported, "null"};
  }
  void revoke(std::string_view) noexcept override {}
  [[nodiscard]] bool is_revoked() const noexcept override { return false; }
  [[nodiscard]] std::optional<Error> failure() const noexcept override { return std::nullopt; }
  [[nodiscard]] std::string describe() const override { return "null"; }
  void close() noexcept override {}

  /// For the receiver: the next message, valid until the slot comes round again.
  bool take(transport::Completion& completion) noexcept {
    if (tail_ == head_) return false;
    const Slot& slot = slots_[tail_++ % kSlots];
    completion = {.kind = transport::Completion::Kind::message, .peer = from_, .message = {slot.bytes, slot.size}};
    return true;
  }

 private:
  static constexpr std::size_t kSlots = 16;
  struct Slot {
    std::byte bytes[kMessageMax];
    std::size_t size = 0;
  };
  Rank from_, to_;
  transport::Capabilities capabilities_;
  std::vector<Slot> slots_{kSlots};
  std::size_t head_ = 0, tail_ = 0;
};

class NullTransport final : public transport::Transport {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "null"; }
  [[nodiscard]] std::vector<std::byte> address() const override { return {}; }
  std::vector<transport::Connected> connect(std::span<const transport::PeerAddress>, Deadline) override { return {}; }
  transport::Endpoint* endpoint(Rank) noexcept override { return nullptr; }
  Result<transport::Registration> register_memory(std::byte* base, std::uint64_t size_bytes,
                                                  device::MemoryKind kind) noexcept override {
    return transport::Registration{base, size_bytes, kind, {}, 0};
  }
  void release_memory(const transport::Registration&) noexcept override {}
  std::size_t poll(std::span<transport::Completion> out) noexcept override {
    std::size_t count = 0;
    for (NullLink* link : incoming) {
      while (count < out.size() && link->take(out[count])) ++count;
    }
    return count;
  }
  bool arm(transport::Wake) noexcept override { return false; }
  void disarm() noexcept override {}
  [[nodiscard]] int event_fd() const noexcept override { return -1; }
  void sleep(Nanos) noexcept override {}

  std::vector<NullLink*>
      incoming;  ///< Only from ranks that send at all: polling the others would be all that is measured.
};

class HeapSource final : public MemorySource {
 public:
  Result<std::byte*> allocate(std::size_t size_bytes) override {
    return static_cast<std::byte*>(std::aligned_alloc(4096, (size_bytes + 4095) / 4096 * 4096));
  }
  void release(std::byte* memory) override { std::free(memory); }
  [[nodiscard]] device::MemoryKind kind_of(const std::byte*, std::size_t) const noexcept override {
    return device::MemoryKind::host;
  }
};

Call all_reduce_call(std::uint32_t ranks, std::uint64_t count) {
  return {{Collective::all_reduce, RankCount{ranks}, Rank{0}, Placement::out_of_place},
          device::DataType::f32,
          device::ReduceOp::sum,
          count};
}

/// All ranks of an all-reduce.
void run_all_reduce(benchmark::State& state, const char* algorithm) {
  const auto n = static_cast<std::uint32_t>(state.range(0));
  const Call call = all_reduce_call(n, n);
  const Shape shape = Shape::flat(RankCount{n});
  HeapSource memory;
  std::deque<NullLink> links;
  std::vector<NullTransport> transports(n);
  std::vector<std::unique_ptr<Engine>> engines;
  std::vector<std::unique_ptr<Program>> programs;
  std::uint64_t steps = 0;
  for (std::uint32_t r = 0; r < n; ++r) {
    const auto plan = algorithms::find_algorithm(algorithm)->make_plan({call.contract, shape, Rank{r}});
    programs.push_back(std::move(*lower(*plan, 1, call, Rank{r}, {})));
    steps += programs.back()->steps.size();
  }
  std::vector<std::vector<NullLink*>> by_rank(n, std::vector<NullLink*>(n));
  for (std::uint32_t from = 0; from < n; ++from) {
    for (const ProgramStep& step : programs[from]->steps) {
      if (step.kind != plan::StepKind::send || by_rank[from][step.peer] != nullptr) continue;
      by_rank[from][step.peer] = &links.emplace_back(Rank{from}, Rank{step.peer});
      transports[step.peer].incoming.push_back(by_rank[from][step.peer]);
    }
  }
  for (std::uint32_t r = 0; r < n; ++r) {
    Engine::Options options;
    options.own_rank = Rank{r};
    for (std::uint32_t peer = 0; peer < n; ++peer) options.links.push_back({nullptr, 0, "rank"});
    for (std::uint32_t peer = 0; peer < n; ++peer) {
      if (by_rank[r][peer] == nullptr && by_rank[peer][r] != nullptr) {
        by_rank[r][peer] = &links.emplace_back(Rank{r}, Rank{peer});  // Carries reports of progress.
        transports[peer].incoming.push_back(by_rank[r][peer]);
      }
      options.links[peer].endpoint = by_rank[r][peer];
    }
    options.transports = {&transports[r]};
    options.memory = &memory;
    options.clock = &steady_clock();
    engines.push_back(std::make_unique<Engine>(std::move(options)));
  }
  std::vector<std::vector<float>> inputs(n, std::vector<float>(n, 1.0F)), outputs(n, std::vector<float>(n));
  std::vector<RequestId> requests(n);
  for (auto _ : state) {
    for (std::uint32_t r = 0; r < n; ++r)
      requests[r] = *engines[r]->start(*programs[r], inputs[r].data(), outputs[r].data());
    bool is_done = false;
    while (!is_done) {
      is_done = true;
      for (std::uint32_t r = 0; r < n; ++r) {
        if (engines[r]->is_finished(requests[r])) continue;
        (void)engines[r]->progress();
        is_done = is_done && engines[r]->is_finished(requests[r]);
      }
    }
    for (std::uint32_t r = 0; r < n; ++r) WEFT_CHECK(engines[r]->collect(requests[r]), "nothing fails here");
  }
  WEFT_CHECK(outputs[n - 1][0] == static_cast<float>(n), "the sum is right");
  state.counters["steps"] = static_cast<double>(steps);
  state.counters["s_per_step"] = benchmark::Counter(
      static_cast<double>(steps), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK_CAPTURE(run_all_reduce, ring, "ring")->Arg(8)->Arg(64);
BENCHMARK_CAPTURE(run_all_reduce, recursive_doubling, "recursive_doubling")->Arg(2)->Arg(8)->Arg(64);

/// A call that was made before: key, hash, look-up. Two calls take turns, as the latest one is found without.
void find_program(benchmark::State& state) {
  ProgramCache cache(Rank{0}, Shape::flat(RankCount{8}), select::Machine{}, {}, {});
  const Call calls[] = {all_reduce_call(8, 1000), all_reduce_call(8, 2000)};
  for (const Call& call : calls) (void)cache.collective(call);
  std::size_t turn = 0;
  for (auto _ : state) benchmark::DoNotOptimize(cache.collective(calls[++turn % 2]));
}
BENCHMARK(find_program);

/// From a plan of this rank to its program.
void lower_plan(benchmark::State& state) {
  const auto n = static_cast<std::uint32_t>(state.range(0));
  const Call call = all_reduce_call(n, 1'000'000);
  const auto plan = algorithms::find_algorithm("ring")->make_plan({call.contract, Shape::flat(RankCount{n}), Rank{0}});
  for (auto _ : state) benchmark::DoNotOptimize(lower(*plan, 1, call, Rank{0}, {}));
}
BENCHMARK(lower_plan)->Arg(8)->Arg(64)->Arg(1024);

}  // namespace
}  // namespace weft::collectives::engine

BENCHMARK_MAIN();
