// Programs of calls drawn from a seed: any collective by any algorithm, any type and reduction, each rank's buffers
// where and how it likes, several calls and sends in flight and collected in any order, over links that delay, stall
// and refuse.
#include <gtest/gtest.h>

#include <numeric>

#include "base/random.h"
#include "collectives/algorithms/algorithm.h"
#include "tests/fakes/known_device.h"
#include "tests/sim/link_kinds.h"
#include "tests/sim/sim_call.h"

namespace weft::test {
namespace {

using collectives::Collective;
using collectives::Contract;
using collectives::Placement;
using collectives::Shape;
using collectives::engine::Call;
using collectives::engine::RequestId;

/// A send and its receive.
struct Pair {
  std::uint32_t from = 0, to = 0;
  std::unique_ptr<SimBuffer> source, destination;
  const collectives::engine::Program* send_program = nullptr;
  const collectives::engine::Program* receive_program = nullptr;
  std::optional<RequestId> send, receive;
};

class RandomPrograms : public testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  std::uint32_t draw(std::uint32_t below) { return static_cast<std::uint32_t>(random_.next() % below); }

  std::unique_ptr<SimCall> draw_call(SimGroup& group, bool is_device_allowed) {
    const std::uint32_t n = group.ranks();
    const auto algorithms = collectives::algorithms::all_algorithms();
    std::vector<std::uint32_t> hosts(n);
    for (std::uint32_t r = 0; r < n; ++r) hosts[r] = r * 2 / n;
    while (true) {
      const auto& algorithm = algorithms[draw(static_cast<std::uint32_t>(algorithms.size()))];
      const auto collective = static_cast<Collective>(draw(collectives::kCollectives));
      const Contract contract{collective, RankCount{n}, Rank{collectives::has_root(collective) ? draw(n) : 0},
                              Placement::out_of_place};
      const Shape shape = algorithm.name == "two_level" ? Shape::of_hosts(hosts) : Shape::flat(RankCount{n});
      Contract in_place = contract;
      in_place.placement = Placement::in_place;
      if (!algorithm.can_plan({contract, shape, {}})) continue;
      const bool can_be_in_place = collective != Collective::all_to_all && algorithm.can_plan({in_place, shape, {}});
      constexpr std::uint64_t kCounts[] = {0, 1, 2, 3, 37, 129, 512, 1003, 2500};
      Call call{contract, static_cast<device::DataType>(draw(device::kDataTypes)),
                static_cast<device::ReduceOp>(draw(device::kReduceOps)),
                collective == Collective::barrier ? 0 : kCounts[draw(std::size(kCounts))]};
      const auto draw_where = [&] { return static_cast<Where>(draw(is_device_allowed ? 3 : 2)); };
      std::vector<RankSetup> setups;
      for (std::uint32_t r = 0; r < n; ++r)
        setups.push_back({can_be_in_place && draw(2) == 0, draw_where(), draw_where()});
      return std::make_unique<SimCall>(group, gpu_, std::string(algorithm.name), call, shape, std::move(setups),
                                       random_.next());
    }
  }

  void run(std::uint64_t seed);

  fakes::FakeGpu gpu_;
  fakes::KnownDevice known_{gpu_};
  Random random_{1};
};

void RandomPrograms::run(std::uint64_t seed) {
  random_ = Random{seed};
  const auto [kind, moves_device] = GetParam();
  const std::uint32_t n = 1 + draw(6);
  transport::sim::SimOptions options = options_of(kLinkKinds[kind], n, seed);
  options.link.moves_device_memory = moves_device;
  options.copy_device = [this](std::byte* to, const std::byte* from, std::size_t size_bytes) {
    std::vector<std::byte> bytes(size_bytes);
    if (size_bytes == 0) return;
    if (gpu_.owns(from))
      gpu_.download(bytes.data(), from, size_bytes);
    else
      std::memcpy(bytes.data(), from, size_bytes);
    if (gpu_.owns(to))
      gpu_.upload(to, bytes.data(), size_bytes);
    else
      std::memcpy(to, bytes.data(), size_bytes);
  };
  SimGroup group{options, 512, 1 + draw(4)};
  std::vector<std::unique_ptr<SimCall>> calls;
  for (std::uint32_t i = 0, count = 1 + draw(8); i < count; ++i) calls.push_back(draw_call(group, true));
  std::vector<Pair> pairs(draw(8));
  for (Pair& pair : pairs) {
    pair.from = draw(n);
    pair.to = draw(n);
    Call call{
        {Collective::broadcast, RankCount{2}, Rank{0}, Placement::out_of_place}, device::DataType::u8, {}, draw(3000)};
    pair.source = std::make_unique<SimBuffer>(group, pair.from, gpu_, static_cast<Where>(draw(3)), call.count);
    pair.destination = std::make_unique<SimBuffer>(group, pair.to, gpu_, static_cast<Where>(draw(3)), call.count);
    std::vector<std::byte> bytes(call.count);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_.next());
    pair.source->write(bytes);
    pair.send_program = &group.pair_program(call, collectives::plan::StepKind::send, pair.from, pair.to);
    pair.receive_program = &group.pair_program(call, collectives::plan::StepKind::receive, pair.to, pair.from);
  }
  // Each rank makes its calls in the common order, and its sends and receives of one pair in theirs, whenever it likes.
  std::vector<std::size_t> next_call(n, 0);
  std::vector<std::size_t> next_send(n, 0), next_receive(n, 0);
  const auto started_all = [&] {
    for (std::uint32_t r = 0; r < n; ++r) {
      if (next_call[r] < calls.size() || next_send[r] < pairs.size() || next_receive[r] < pairs.size()) return false;
    }
    return true;
  };
  while (!started_all()) {
    const std::uint32_t rank = draw(n);
    switch (draw(4)) {
      case 0:
        if (next_call[rank] == calls.size()) break;
        ASSERT_EQ(calls[next_call[rank]++]->start(rank), "");
        break;
      case 1:
        if (next_send[rank] == pairs.size()) break;
        if (Pair& pair = pairs[next_send[rank]++]; pair.from == rank) {
          auto request = group.engine(rank).start_point_to_point(*pair.send_program, pair.source->data(), nullptr);
          ASSERT_TRUE(request) << request.error().message();
          pair.send = *request;
        }
        break;
      case 2:
        if (next_receive[rank] == pairs.size()) break;
        if (Pair& pair = pairs[next_receive[rank]++]; pair.to == rank) {
          auto request =
              group.engine(rank).start_point_to_point(*pair.receive_program, nullptr, pair.destination->data());
          ASSERT_TRUE(request) << request.error().message();
          pair.receive = *request;
        }
        break;
      default: (void)group.engine(rank).progress(); (void)group.cluster().step();
    }
  }
  const auto is_done = [&] {
    for (const auto& call : calls) {
      if (!call->is_finished()) return false;
    }
    for (const Pair& pair : pairs) {
      if (!group.engine(pair.from).is_finished(*pair.send) || !group.engine(pair.to).is_finished(*pair.receive))
        return false;
    }
    return true;
  };
  if (!group.run_until(is_done)) {
    for (const auto& call : calls) ASSERT_TRUE(call->is_finished()) << call->explain();
    FAIL() << "a send or receive hangs";
  }
  std::vector<std::size_t> order(calls.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[draw(static_cast<std::uint32_t>(i))]);
  for (const std::size_t i : order) ASSERT_EQ(calls[i]->check(), "");
  for (const Pair& pair : pairs) {
    ASSERT_TRUE(group.engine(pair.from).collect(*pair.send));
    ASSERT_TRUE(group.engine(pair.to).collect(*pair.receive));
    ASSERT_EQ(pair.source->read(), pair.destination->read()) << pair.from << " -> " << pair.to;
  }
}

TEST_P(RandomPrograms, AgreeWithTheOracle) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    run(seed);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Links, RandomPrograms, testing::Combine(testing::Range(0, kNumLinkKinds), testing::Bool()),
                         [](const auto& test) {
                           return std::string(kLinkKinds[std::get<0>(test.param)].name) +
                                  (std::get<1>(test.param) ? "_gpudirect" : "");
                         });

}  // namespace
}  // namespace weft::test
