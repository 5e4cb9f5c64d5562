#include "collectives/plan/verify.h"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/plan/buffers.h"
#include "collectives/plan/describe.h"
#include "collectives/plan/graph.h"
#include "collectives/plan/races.h"
#include "collectives/plan/values.h"

namespace weft::collectives::plan {
namespace {

/// One run of the plan in which every chunk holds an expression.
class SymbolicRun {
 public:
  SymbolicRun(const Graph& graph, const LocationNumbers& numbers)
      : graph_(graph),
        plan_(graph.plan()),
        numbers_(numbers),
        values_(plan_.contract, plan_.parts_per_block),
        memory_(numbers.count(), Values::kUndefined),
        on_the_way_(plan_.num_transfers, Values::kUndefined) {
    for (std::uint32_t rank = 0; rank < plan_.contract.ranks.value(); ++rank) {
      const std::uint32_t chunks = plan_.contract.input_blocks(Rank{rank}) * plan_.parts_per_block;
      for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
        at(canonical(plan_.contract, plan_.parts_per_block, {Rank{rank}, Buffer::input, chunk})) =
            values_.input(Rank{rank}, chunk);
      }
    }
  }

  Status run() {
    for (const Graph::Node node : graph_.order()) WEFT_TRY(step(node));
    return {};
  }
  /// Compares every output chunk with the contract; answers whether all reduced chunks have one shape.
  Result<bool> check_outputs();

 private:
  Status step(Graph::Node node);
  Status check_output(Rank rank, std::uint32_t chunk);
  [[nodiscard]] Values::Value& at(const Location& location) { return memory_[numbers_.of(location)]; }
  Result<Values::Value> read(Graph::Node node, const Location& location);

  const Graph& graph_;
  const Plan& plan_;
  const LocationNumbers& numbers_;
  Values values_;
  std::vector<Values::Value> memory_;
  std::vector<Values::Value> on_the_way_;  ///< Per transfer: what its send read.
};

Result<Values::Value> SymbolicRun::read(Graph::Node node, const Location& location) {
  const Values::Value value = at(location);
  if (value != Values::kUndefined) return value;
  return Error{ErrorCode::invalid_argument,
               fmt::format("plan {}: {} reads {}, which nothing has written", plan_.name, graph_.describe(node),
                           describe(location, plan_.parts_per_block))};
}

Status SymbolicRun::step(Graph::Node node) {
  const Step& step = graph_.step(node);
  if (step.kind == StepKind::receive) {
    at(step.destination) = on_the_way_[step.transfer];
    return {};
  }
  WEFT_TRY_ASSIGN(const Values::Value source, read(node, step.source));
  Values::Value other = source;
  switch (step.kind) {
    case StepKind::send: on_the_way_[step.transfer] = source; return {};
    case StepKind::copy: at(step.destination) = source; return {};
    case StepKind::reduce: {
      WEFT_TRY_ASSIGN(other, read(node, step.second));
      break;
    }
    case StepKind::receive_reduce: other = on_the_way_[step.transfer]; break;
    case StepKind::receive: break;
  }
  Result<Values::Value> joined = values_.join(source, other);
  if (!joined) return joined.error().within(fmt::format("plan {}: {}", plan_.name, graph_.describe(node)));
  at(step.destination) = *joined;
  return {};
}

Status SymbolicRun::check_output(Rank rank, std::uint32_t chunk) {
  const Contract& contract = plan_.contract;
  const std::uint32_t parts = plan_.parts_per_block;
  const std::uint32_t block = chunk / parts;
  const std::uint32_t part = chunk % parts;
  const Values::Value found = at(canonical(contract, parts, {rank, Buffer::output, chunk}));
  const auto wrong = [&](const std::string& expected) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("plan {}: {} ends with {}, but {} wants {}", plan_.name,
                             describe(Location{rank, Buffer::output, chunk}, parts), values_.describe(found),
                             name_of(contract.collective), expected)};
  };
  if (reduces(contract.collective)) {
    const std::uint32_t wanted =
        contract.collective == Collective::reduce_scatter ? rank.value() * parts + part : chunk;
    if (values_.is_complete(found, wanted)) return {};
    return wrong(fmt::format("the reduction of input block {} part {} over all {} ranks", wanted / parts, part,
                             contract.ranks.value()));
  }
  Values::Value wanted = Values::kUndefined;
  switch (contract.collective) {
    case Collective::broadcast: wanted = values_.input(contract.root, part); break;
    case Collective::scatter: wanted = values_.input(contract.root, rank.value() * parts + part); break;
    case Collective::all_to_all: wanted = values_.input(Rank{block}, rank.value() * parts + part); break;
    default: wanted = values_.input(Rank{block}, part); break;  // all_gather, gather
  }
  if (found == wanted) return {};
  return wrong(values_.describe(wanted));
}

Result<bool> SymbolicRun::check_outputs() {
  const Contract& contract = plan_.contract;
  const std::uint32_t parts = plan_.parts_per_block;
  const bool is_reduction = reduces(contract.collective);
  const bool is_everywhere =
      contract.collective == Collective::all_reduce || contract.collective == Collective::barrier;
  bool is_one_shape = true;
  std::uint64_t shape = 0;
  bool is_first = true;
  for (std::uint32_t number = 0; number < contract.ranks.value(); ++number) {
    const Rank rank{number};
    const std::uint32_t chunks = contract.output_blocks(rank) * parts;
    for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
      WEFT_TRY(check_output(rank, chunk));
      if (!is_reduction) continue;
      const Values::Value found = at(canonical(contract, parts, {rank, Buffer::output, chunk}));
      if (is_everywhere && found != at(canonical(contract, parts, {Rank{0}, Buffer::output, chunk}))) {
        return Error{
            ErrorCode::invalid_argument,
            fmt::format("plan {}: ranks 0 and {} join the ranks of block {} part {} in different orders, so that "
                        "their results can differ in bits",
                        plan_.name, number, chunk / parts, chunk % parts)};
      }
      if (is_first) shape = values_.shape_of(found);
      is_first = false;
      is_one_shape = is_one_shape && shape == values_.shape_of(found);
    }
  }
  return is_one_shape;
}

}  // namespace

Result<Verdict> verify(const Plan& plan) {
  WEFT_TRY_ASSIGN(const Graph graph, Graph::create(plan));
  const LocationNumbers numbers{plan};
  WEFT_TRY(check_races(graph, numbers));
  SymbolicRun run{graph, numbers};
  WEFT_TRY(run.run());

  Verdict verdict;
  WEFT_TRY_ASSIGN(verdict.is_position_independent, run.check_outputs());
  verdict.num_steps = graph.num_nodes();
  verdict.num_transfers = plan.num_transfers;
  const std::vector<std::uint32_t> depths = graph.depths();
  if (!depths.empty()) verdict.depth = *std::max_element(depths.begin(), depths.end());
  std::uint64_t most_sent = 0;
  for (const auto& steps : plan.steps) {
    const auto sent = std::count_if(steps.begin(), steps.end(), [](const Step& s) { return s.kind == StepKind::send; });
    most_sent = std::max(most_sent, static_cast<std::uint64_t>(sent));
  }
  verdict.max_sent_blocks = static_cast<double>(most_sent) / plan.parts_per_block;
  return verdict;
}

}  // namespace weft::collectives::plan
