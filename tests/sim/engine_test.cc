// Every collective, by every algorithm, over every kind of link, under seeded delays: the right elements on every rank.
#include "collectives/engine/engine.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/sim/link_kinds.h"
#include "tests/sim/sim_group.h"

namespace weft::test {
namespace {

using collectives::Collective;
using collectives::Contract;
using collectives::Placement;
using collectives::Shape;
using collectives::engine::Call;
using collectives::engine::RequestId;
using Values = std::vector<std::int32_t>;

std::int32_t input_value(std::uint32_t rank, std::size_t index) {
  return static_cast<std::int32_t>((rank + 1) * 1000003U + index * 7919U);
}

/// What `rank`'s output must be; empty if it has none.
Values expected(const Contract& contract, std::uint32_t rank, std::size_t count) {
  const std::uint32_t n = contract.ranks.value();
  const auto sum_at = [&](std::size_t index) {
    std::uint32_t sum = 0;
    for (std::uint32_t r = 0; r < n; ++r) sum += static_cast<std::uint32_t>(input_value(r, index));
    return static_cast<std::int32_t>(sum);
  };
  Values result(contract.output_blocks(Rank{rank}) * count);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto block = static_cast<std::uint32_t>(i / count);
    switch (contract.collective) {
      case Collective::all_reduce:
      case Collective::reduce: result[i] = sum_at(i); break;
      case Collective::broadcast: result[i] = input_value(contract.root.value(), i); break;
      case Collective::all_gather:
      case Collective::gather: result[i] = input_value(block, i % count); break;
      case Collective::reduce_scatter: result[i] = sum_at(rank * count + i); break;
      case Collective::scatter: result[i] = input_value(contract.root.value(), rank * count + i); break;
      case Collective::all_to_all: result[i] = input_value(block, rank * count + i % count); break;
      case Collective::barrier: break;
    }
  }
  return result;
}

/// The buffers of one rank; in place they are one.
struct Buffers {
  Values input, output;
  const void* send = nullptr;
  void* receive = nullptr;
};

Buffers make_buffers(const Contract& contract, std::uint32_t rank, std::size_t count) {
  Buffers buffers;
  const bool in_place = contract.placement == Placement::in_place && contract.shared_block(Rank{rank}).has_value();
  const std::size_t in = contract.input_blocks(Rank{rank}) * count;
  const std::size_t out = contract.output_blocks(Rank{rank}) * count;
  buffers.input.resize(in);
  for (std::size_t i = 0; i < in; ++i) buffers.input[i] = input_value(rank, i);
  buffers.output.assign(out, -1);
  if (!in_place) {
    buffers.send = buffers.input.data();
    buffers.receive = buffers.output.data();
  } else if (out >= in) {
    std::copy(buffers.input.begin(), buffers.input.end(),
              buffers.output.begin() + static_cast<std::ptrdiff_t>(*contract.shared_block(Rank{rank}) * count));
    buffers.send = buffers.output.data() + *contract.shared_block(Rank{rank}) * count;
    buffers.receive = buffers.output.data();
  } else {
    buffers.send = buffers.input.data();
    buffers.receive = buffers.input.data() + *contract.shared_block(Rank{rank}) * count;
  }
  return buffers;
}

void run_and_check(SimGroup& group, const std::string& algorithm, const Contract& contract, std::size_t count,
                   const Shape& shape) {
  const std::uint32_t n = group.ranks();
  Call call{contract, device::DataType::i32, device::ReduceOp::sum, count};
  std::vector<Buffers> buffers;
  std::vector<RequestId> requests;
  for (std::uint32_t r = 0; r < n; ++r) {
    buffers.push_back(make_buffers(contract, r, count));
    auto request = group.engine(r).start(group.program(algorithm, call, shape, r), buffers[r].send, buffers[r].receive);
    ASSERT_TRUE(request) << request.error().message();
    requests.push_back(*request);
  }
  const bool done = group.run_until([&] {
    for (std::uint32_t r = 0; r < n; ++r) {
      if (!group.engine(r).is_finished(requests[r])) return false;
    }
    return true;
  });
  for (std::uint32_t r = 0; r < n; ++r) ASSERT_TRUE(done) << group.engine(r).explain(requests[r]);
  for (std::uint32_t r = 0; r < n; ++r) {
    const Status status = group.engine(r).collect(requests[r]);
    ASSERT_TRUE(status) << status.error().message();
    const Values wanted = expected(contract, r, count);
    const auto* got = static_cast<const std::int32_t*>(buffers[r].receive);
    for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(got[i], wanted[i]) << "rank " << r << " element " << i;
  }
}

class EngineCollectives : public testing::TestWithParam<std::tuple<int, std::uint32_t>> {};

TEST_P(EngineCollectives, GiveTheRightElementsByEveryAlgorithm) {
  const LinkKind& kind = kLinkKinds[std::get<0>(GetParam())];
  const std::uint32_t n = std::get<1>(GetParam());
  std::vector<std::uint32_t> hosts(n);
  for (std::uint32_t r = 0; r < n; ++r) hosts[r] = r * 2 / n;
  std::uint64_t seed = 1;
  int runs = 0;
  for (const auto& algorithm : collectives::algorithms::all_algorithms()) {
    for (std::size_t c = 0; c < collectives::kCollectives; ++c) {
      for (const Placement placement : {Placement::out_of_place, Placement::in_place}) {
        const Contract contract{static_cast<Collective>(c), RankCount{n}, Rank{n - 1}, placement};
        const bool flat = algorithm.name != "two_level";
        const Shape shape = flat ? Shape::flat(RankCount{n}) : Shape::of_hosts(hosts);
        if (!algorithm.can_plan({contract, shape, {}})) continue;
        const bool is_rooted = collectives::has_root(contract.collective);
        Contract asked = contract;
        if (!is_rooted) asked.root = Rank{0};
        SCOPED_TRACE(std::string(algorithm.name) + " " + std::string(name_of(asked.collective)) +
                     (placement == Placement::in_place ? " in place" : "") + " seed " + std::to_string(seed));
        SimGroup group{options_of(kind, n, seed++)};
        // Several operations one after the other reuse what the first one left behind.
        for (const std::size_t count : {std::size_t{1003}, std::size_t{1}, std::size_t{0}, std::size_t{37}}) {
          run_and_check(group, std::string(algorithm.name), asked, asked.collective == Collective::barrier ? 0 : count,
                        shape);
          if (HasFatalFailure()) return;
        }
        ++runs;
      }
    }
  }
  EXPECT_GT(runs, 20);
}

INSTANTIATE_TEST_SUITE_P(Links, EngineCollectives,
                         testing::Combine(testing::Range(0, 4), testing::Values(1U, 2U, 3U, 4U, 5U, 8U)),
                         [](const auto& test) {
                           return std::string(kLinkKinds[std::get<0>(test.param)].name) + "_" +
                                  std::to_string(std::get<1>(test.param)) + "_ranks";
                         });

}  // namespace
}  // namespace weft::test
