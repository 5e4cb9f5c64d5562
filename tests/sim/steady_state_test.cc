// What holds over many calls: no allocation, the same bits, no stack that grows with the number of slices.
#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/sim/allocation_count.h"
#include "tests/sim/link_kinds.h"
#include "tests/sim/sim_group.h"

namespace weft::test {
namespace {

using collectives::Collective;
using collectives::Placement;
using collectives::Shape;
using collectives::engine::Call;
using collectives::engine::RequestId;

Call all_reduce(std::uint32_t ranks, device::DataType type, std::uint64_t count,
                Placement placement = Placement::out_of_place) {
  return {{Collective::all_reduce, RankCount{ranks}, Rank{0}, placement}, type, device::ReduceOp::sum, count};
}

TEST(SteadyState, ASmallCallThatWasMadeBeforeAllocatesNothing) {
  // The simulated link allocates its messages, so only the engine's own calls are counted: a start that finds what it
  // waits for is not there yet, and a start that completes at once because it is alone.
  SimGroup alone{options_of(kLinkKinds[0], 1, 1)};
  const auto& program = alone.program("direct", all_reduce(1, device::DataType::f64, 1), Shape::flat(RankCount{1}), 0);
  double input = 2.0;
  double output = 0.0;
  const auto run = [&] {
    auto request = alone.engine(0).start(program, &input, &output);
    (void)alone.engine(0).progress();
    return request && alone.engine(0).is_finished(*request) && alone.engine(0).collect(*request);
  };
  ASSERT_TRUE(run());
  const std::uint64_t before = num_allocations();
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(run());
  EXPECT_EQ(num_allocations(), before);
  EXPECT_EQ(output, 2.0);

  transport::sim::SimOptions options = options_of(kLinkKinds[0], 2, 1);
  options.faults = {};
  SimGroup pair{options};
  const Call call{
      {Collective::broadcast, RankCount{2}, Rank{0}, Placement::out_of_place}, device::DataType::f64, {}, 1};
  const auto& sends = pair.program("direct", call, Shape::flat(RankCount{2}), 0);
  const auto& receives = pair.program("direct", call, Shape::flat(RankCount{2}), 1);
  std::uint64_t in_engine = 0;
  const auto counted = [&](const auto& work) {
    const std::uint64_t start = num_allocations();
    work();
    in_engine += num_allocations() - start;
  };
  for (int i = 0; i < 1000; ++i) {
    if (i == 100) in_engine = 0;
    std::optional<RequestId> receive;
    counted([&] { receive = *pair.engine(1).start(receives, nullptr, &output); });
    auto send = pair.engine(0).start(sends, &input, &input);  // Posts: the link allocates.
    ASSERT_TRUE(
        pair.run_until([&] { return pair.engine(0).is_finished(*send) && pair.engine(1).is_finished(*receive); }));
    counted([&] {
      (void)pair.engine(0).collect(*send);
      (void)pair.engine(1).collect(*receive);
    });
  }
  EXPECT_EQ(in_engine, 0U);
}

TEST(SteadyState, RandomFloatsGiveTheSameBitsOnAllRanksByEveryAlgorithmAndInEveryRun) {
  constexpr std::size_t kCount = 777;
  for (const std::uint32_t n : {2U, 3U, 5U, 8U}) {
    std::vector<std::uint32_t> hosts(n);
    for (std::uint32_t r = 0; r < n; ++r) hosts[r] = r * 2 / n;
    for (const auto& algorithm : collectives::algorithms::all_algorithms()) {
      const Call call = all_reduce(n, device::DataType::f32, kCount);
      const Shape shape = algorithm.name == "two_level" ? Shape::of_hosts(hosts) : Shape::flat(RankCount{n});
      if (!algorithm.can_plan({call.contract, shape, {}})) continue;
      std::vector<float> first;
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        SCOPED_TRACE(std::string(algorithm.name) + " ranks " + std::to_string(n) + " seed " + std::to_string(seed));
        SimGroup group{options_of(kLinkKinds[seed % kNumLinkKinds], n, seed)};
        std::vector<std::vector<float>> inputs(n), outputs(n, std::vector<float>(kCount));
        std::vector<RequestId> requests;
        for (std::uint32_t r = 0; r < n; ++r) {
          Random random{r + 1};
          for (std::size_t i = 0; i < kCount; ++i) {
            inputs[r].push_back(static_cast<float>(static_cast<std::int64_t>(random.next())) * 1e-12F *
                                static_cast<float>(1U << (random.next() % 20)));
          }
          // Placement is each rank's own affair and changes no bit.
          Call own = call;
          if ((r + seed) % 2 == 0) {
            own.contract.placement = Placement::in_place;
            outputs[r] = inputs[r];
          }
          const void* input = own.contract.placement == Placement::in_place ? outputs[r].data() : inputs[r].data();
          requests.push_back(*group.engine(r).start(group.program(std::string(algorithm.name), own, shape, r), input,
                                                    outputs[r].data()));
        }
        ASSERT_TRUE(group.run_until([&] {
          for (std::uint32_t r = 0; r < n; ++r) {
            if (!group.engine(r).is_finished(requests[r])) return false;
          }
          return true;
        }));
        if (first.empty()) first = outputs[0];
        for (std::uint32_t r = 0; r < n; ++r) {
          ASSERT_EQ(std::memcmp(std::as_bytes(std::span(outputs[r])).data(), std::as_bytes(std::span(first)).data(),
                                kCount * sizeof(float)),
                    0)
              << "rank " << r;
        }
      }
    }
  }
}

TEST(SteadyState, ManySlicesWithoutStepsNeedNoStack) {
  // One rank in place has nothing to do, slice by slice.
  SimGroup group{options_of(kLinkKinds[0], 1, 1), 64, 3};
  std::vector<std::uint8_t> memory(std::size_t{64} << 20);
  const Call call = all_reduce(1, device::DataType::u8, memory.size(), Placement::in_place);
  const auto& program = group.program("direct", call, Shape::flat(RankCount{1}), 0);
  ASSERT_EQ(program.slicing.num_slices, 1U << 20);
  auto request = group.engine(0).start(program, memory.data(), memory.data());
  ASSERT_TRUE(request);
  ASSERT_TRUE(group.run_until([&] { return group.engine(0).is_finished(*request); }));
  EXPECT_TRUE(group.engine(0).collect(*request));
}

}  // namespace
}  // namespace weft::test
