#include "collectives/select/selector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace weft::collectives::select {
namespace {

constexpr std::uint32_t kFloat = 4;

Contract contract_of(Collective collective, const Shape& shape) {
  return {.collective = collective, .ranks = shape.ranks()};
}

Choice choice_for(Collective collective, const Shape& shape, std::uint64_t bytes, const Machine& machine = {},
                  std::string_view setting = "auto") {
  Selector selector(shape, machine, AlgorithmSetting::parse(setting).value_or(AlgorithmSetting{}));
  const Result<const Choice*> choice = selector.choose(contract_of(collective, shape), kFloat, bytes / kFloat);
  EXPECT_TRUE(choice) << choice.error().message();
  return choice ? **choice : Choice{};
}

Nanos predicted(const Choice& choice, std::string_view name) {
  const auto found = std::ranges::find(choice.candidates, algorithms::find_algorithm(name), &Candidate::algorithm);
  EXPECT_NE(found, choice.candidates.end()) << name << " is not a candidate";
  return found == choice.candidates.end() ? Nanos{} : found->predicted;
}

Shape hosts_of(std::uint32_t hosts, std::uint32_t local) {
  std::vector<std::uint32_t> host_of_rank;
  for (std::uint32_t r = 0; r < hosts * local; ++r) host_of_rank.push_back(r / local);
  return Shape::of_hosts(host_of_rank);
}

TEST(Selector, TakesTheFastestCandidateAndKeepsAllInOrder) {
  const Choice choice = choice_for(Collective::all_reduce, Shape::flat(RankCount{8}), 1 << 20);
  EXPECT_EQ(choice.candidates.size(), 6U);
  EXPECT_EQ(choice.algorithm, choice.candidates.front().algorithm);
  EXPECT_TRUE(std::ranges::is_sorted(choice.candidates, {}, &Candidate::predicted));
  EXPECT_NE(choice.reason.find("fastest of 6"), std::string::npos) << choice.reason;
}

TEST(Selector, ChangesWithTheSize) {
  const Shape two = Shape::flat(RankCount{2});
  EXPECT_EQ(choice_for(Collective::all_reduce, two, 8).algorithm->name, "direct");
  EXPECT_EQ(choice_for(Collective::all_reduce, two, 1 << 26).algorithm->name, "direct_split");
}

TEST(Selector, TakesFewRoundsForLittleDataAndFewBytesForMuch) {
  const Shape sixteen = Shape::flat(RankCount{16});
  const Choice small = choice_for(Collective::all_reduce, sixteen, 8);
  EXPECT_LE(predicted(small, small.algorithm->name) * 4, predicted(small, "ring")) << "30 rounds for 8 bytes";
  const Choice large = choice_for(Collective::all_reduce, sixteen, 64 << 20);
  EXPECT_LE(predicted(large, large.algorithm->name) * 3, predicted(large, "direct")) << "15 times the bytes";
  EXPECT_NE(choice_for(Collective::broadcast, hosts_of(8, 1), 64 << 20).algorithm->name, "direct")
      << "7 times the bytes";
}

TEST(Selector, SharesAChoiceInsideASizeClassAndBetweenRoots) {
  const Shape shape = Shape::flat(RankCount{4});
  Selector selector(shape, {}, {});
  Contract contract = contract_of(Collective::broadcast, shape);
  const Choice* first = selector.choose(contract, kFloat, 1024 / kFloat).value();
  EXPECT_EQ(selector.choose(contract, kFloat, 2044 / kFloat).value(), first);
  contract.root = Rank{3};
  EXPECT_EQ(selector.choose(contract, kFloat, 1500 / kFloat).value(), first);
  EXPECT_NE(selector.choose(contract, kFloat, 2048 / kFloat).value(), first);
}

TEST(Selector, IsTheSameOnAllRanksAndEveryTime) {
  const Shape shape = hosts_of(3, 4);
  for (std::size_t c = 0; c < kCollectives; ++c) {
    for (std::uint64_t bytes = 4; bytes <= (1 << 24); bytes *= 8) {
      const Choice one = choice_for(static_cast<Collective>(c), shape, bytes);
      const Choice other = choice_for(static_cast<Collective>(c), shape, bytes);
      EXPECT_EQ(one.algorithm, other.algorithm);
      for (std::size_t i = 0; i < one.candidates.size(); ++i) {
        EXPECT_EQ(one.candidates[i].predicted, other.candidates[i].predicted);
      }
    }
  }
}

TEST(Selector, AnswersForNothingAndForTooMuch) {
  const Shape shape = Shape::flat(RankCount{5});
  Selector selector(shape, {}, {});
  EXPECT_TRUE(selector.choose(contract_of(Collective::barrier, shape), 0, 0));
  EXPECT_TRUE(selector.choose(contract_of(Collective::all_reduce, shape), 4, 0));
  EXPECT_TRUE(selector.choose(contract_of(Collective::all_reduce, shape), 1, 1));
  EXPECT_TRUE(selector.choose(contract_of(Collective::all_gather, shape), 8, ~std::uint64_t{0}));
  const Shape alone = Shape::flat(RankCount{1});
  Selector single(alone, {}, {});
  EXPECT_TRUE(single.choose(contract_of(Collective::all_to_all, alone), 4, 100));
}

TEST(Selector, KeepsBytesInsideHostsThatShareAPort) {
  // Four hosts of eight: flat exchanges would carry every rank's bytes through the ports.
  const Choice large = choice_for(Collective::all_reduce, hosts_of(4, 8), 4 << 20);
  EXPECT_GT(predicted(large, "direct_split"), 5 * large.candidates.front().predicted);
  EXPECT_LE(predicted(large, "two_level") * 2, 3 * large.candidates.front().predicted);
  EXPECT_EQ(choice_for(Collective::broadcast, hosts_of(4, 8), 1 << 10).algorithm->name, "two_level");
}

TEST(Selector, CountsTheTurnsOfRanksThatShareACore) {
  const Shape shape = Shape::flat(RankCount{8});
  Machine machine;
  machine.cores_per_host = 2;
  const Choice crowded = choice_for(Collective::barrier, shape, 0, machine);
  const Choice roomy = choice_for(Collective::barrier, shape, 0);
  EXPECT_GT(crowded.candidates.front().predicted, 5 * roomy.candidates.front().predicted);
}

TEST(Selector, ObeysTheSetting) {
  const Shape shape = Shape::flat(RankCount{4});
  const Choice wished = choice_for(Collective::all_reduce, shape, 8, {}, "ring");
  EXPECT_EQ(wished.algorithm->name, "ring");
  EXPECT_NE(wished.reason.find("WEFT_ALGORITHM"), std::string::npos) << wished.reason;
  EXPECT_GT(wished.candidates.size(), 1U) << "what it would have been is still said";
  EXPECT_EQ(choice_for(Collective::all_reduce, shape, 8, {}, "all_reduce=ring").algorithm->name, "ring");
  EXPECT_NE(choice_for(Collective::broadcast, shape, 8, {}, "all_reduce=ring").algorithm->name, "ring");
}

TEST(Selector, SaysWhenAWishCannotBeFulfilled) {
  const Choice choice = choice_for(Collective::barrier, Shape::flat(RankCount{4}), 0, {}, "ring");
  EXPECT_EQ(choice.algorithm, choice.candidates.front().algorithm);
  EXPECT_NE(choice.reason.find("ring, which WEFT_ALGORITHM names, cannot"), std::string::npos) << choice.reason;
}

TEST(Selector, RefusesAnOrderThatCannotBeFulfilledAndNamesWhatCan) {
  const Shape shape = Shape::flat(RankCount{4});
  Selector selector(shape, {}, AlgorithmSetting::parse("all_reduce=two_level").value());
  const Result<const Choice*> choice = selector.choose(contract_of(Collective::all_reduce, shape), kFloat, 100);
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().code(), ErrorCode::unsupported);
  EXPECT_NE(choice.error().message().find("two_level"), std::string::npos) << choice.error().message();
  EXPECT_NE(choice.error().remedy().find("direct, direct_split"), std::string::npos) << choice.error().message();
}

/// Machines that differ from the one of the constants as real ones do: slower and faster threads, caches, networks.
std::vector<Machine> other_machines() {
  std::vector<Machine> machines(4);
  machines[0].same_host.latency_ns *= 3;
  machines[0].other_host.latency_ns *= 3;
  machines[1].same_host.latency_ns /= 3;
  machines[1].other_host.latency_ns /= 3;
  machines[2].same_host.per_step_ns *= 2;
  machines[2].other_host.per_step_ns *= 2;
  machines[3].same_host.bytes_per_ns *= 3;
  machines[3].same_host.fresh_bytes_per_ns *= 3;
  machines[3].reduce_bytes_per_ns *= 3;
  machines[3].copy_bytes_per_ns *= 3;
  return machines;
}

TEST(Selector, IsNeverGrotesquelyWrongOnAnotherMachine) {
  // No point at which the default takes more than twice the time of the best.
  for (const Shape& shape : {hosts_of(1, 2), hosts_of(1, 3), hosts_of(1, 5), hosts_of(1, 8), hosts_of(1, 16),
                             hosts_of(4, 1), hosts_of(7, 1), hosts_of(2, 4)}) {
    for (std::size_t c = 0; c < kCollectives; ++c) {
      const auto collective = static_cast<Collective>(c);
      for (const std::uint64_t bytes : {8U, 512U, 4096U, 32768U, 1U << 20}) {
        const Choice chosen = choice_for(collective, shape, bytes);
        for (const Machine& machine : other_machines()) {
          const Choice there = choice_for(collective, shape, bytes, machine);
          EXPECT_LE(predicted(there, chosen.algorithm->name), 2 * there.candidates.front().predicted)
              << name_of(collective) << " of " << bytes << " bytes on " << shape.ranks().value() << " ranks, "
              << shape.num_hosts() << " hosts: " << chosen.algorithm->name << " where " << there.algorithm->name
              << " is best";
        }
      }
    }
  }
}

TEST(Selector, ExtrapolatesToThousandsOfRanks) {
  const Shape shape = hosts_of(512, 8);
  const Choice small = choice_for(Collective::all_reduce, shape, 8);
  // 4095 direct messages or 8190 rounds would take milliseconds.
  EXPECT_NE(small.algorithm->name, "direct");
  EXPECT_NE(small.algorithm->name, "ring");
  EXPECT_GT(predicted(small, "ring"), 50 * small.candidates.front().predicted);
  const Choice at_64 = choice_for(Collective::all_reduce, hosts_of(8, 8), 8);
  const Choice at_65 = choice_for(Collective::all_reduce, Shape::flat(RankCount{65}), 8);
  EXPECT_FALSE(at_65.candidates.empty());
  for (const Candidate& candidate : at_64.candidates) {
    EXPECT_GE(predicted(small, candidate.algorithm->name), candidate.predicted) << candidate.algorithm->name;
  }
}

}  // namespace
}  // namespace weft::collectives::select
