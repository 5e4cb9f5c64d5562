#include "collectives/plan/graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/plan/buffers.h"
#include "collectives/plan/describe.h"

namespace weft::collectives::plan {
namespace {

/// Nodes, locations and expressions are numbered in 32 bits: half for chunks and half for steps, so that sums fit.
constexpr std::uint64_t kMaxNumber = (std::uint64_t{1} << 31) - 1;

constexpr const char* kCompleteOnly = "A focused plan holds the steps of one rank only; verify the complete one";

Status check_frame(const Plan& plan) {
  const auto wrong = [&](const std::string& what) {
    return Error{ErrorCode::invalid_argument, fmt::format("plan {}: {}", plan.name, what)};
  };
  const Contract& contract = plan.contract;
  const std::uint32_t ranks = contract.ranks.value();
  if (static_cast<std::size_t>(contract.collective) >= kCollectives) return wrong("it is of no known collective");
  if (ranks == 0) return wrong("its group has no ranks");
  if (contract.root.value() >= ranks) {
    return wrong(fmt::format("root {} is not one of {} ranks", contract.root.value(), ranks));
  }
  if (!has_root(contract.collective) && contract.root != Rank{0}) {
    return wrong(
        fmt::format("{} has no root, but one is named: {}", name_of(contract.collective), contract.root.value()));
  }
  if (contract.collective == Collective::all_to_all && contract.placement == Placement::in_place) {
    return wrong("all_to_all is never in place");
  }
  if (plan.parts_per_block == 0) return wrong("a block has at least one part");
  if (plan.lanes == 0) return wrong("a plan has at least one lane");
  if (plan.steps.size() != ranks || plan.scratch_chunks.size() != ranks) {
    return wrong(fmt::format("it holds steps of {} ranks and scratch of {}, for a group of {}", plan.steps.size(),
                             plan.scratch_chunks.size(), ranks));
  }
  std::uint64_t chunks = 0;
  std::uint64_t steps = 0;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    steps += plan.steps[rank].size();
    for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch}) {
      chunks += num_chunks(plan, Rank{rank}, buffer);
    }
    // Summed rank by rank, neither can pass 2^64 before this sees it.
    if (chunks > kMaxNumber || steps > kMaxNumber) return wrong("it has 2^31 chunks or steps or more");
  }
  if (plan.num_transfers > steps / 2) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("plan {}: {} steps cannot be the ends of {} transfers", plan.name, steps, plan.num_transfers),
        kCompleteOnly};
  }
  return {};
}

}  // namespace

Result<Graph> Graph::create(const Plan& plan) {
  WEFT_TRY(check_frame(plan));
  Graph graph{plan};
  WEFT_TRY(graph.number_steps());
  for (Node node = 0; node < graph.num_nodes(); ++node) WEFT_TRY(graph.check_step(node));
  WEFT_TRY(graph.match_transfers());
  WEFT_TRY(graph.find_order());
  return graph;
}

std::string Graph::describe(Node node) const {
  const Rank rank = rank_of(node);
  return plan::describe(*plan_, rank, node - first_of_[rank.index()]);
}

Error Graph::wrong(Node node, const std::string& what) const {
  return Error{ErrorCode::invalid_argument, fmt::format("plan {}: {}: {}", plan_->name, describe(node), what)};
}

Status Graph::number_steps() {
  for (std::uint32_t rank = 0; rank < plan_->steps.size(); ++rank) {
    first_of_.push_back(num_nodes());
    for (const Step& step : plan_->steps[rank]) {
      steps_.push_back(&step);
      ranks_.emplace_back(rank);
    }
  }
  return {};
}

Status Graph::check_step(Node node) const {
  const Step& step = this->step(node);
  const Rank rank = rank_of(node);
  const std::uint32_t parts = plan_->parts_per_block;
  if (step.kind > StepKind::reduce) return wrong(node, "it is of no known kind");

  const Reads reads = reads_of(step);
  const std::uint32_t part = (writes(step.kind) ? step.destination.chunk : step.source.chunk) % parts;
  const auto check_place = [&](const Location& location) -> Status {
    if (location.rank != rank) {
      return wrong(node, fmt::format("{} is memory of another rank", plan::describe(location, parts)));
    }
    if (location.buffer > Buffer::scratch || location.chunk >= num_chunks(*plan_, rank, location.buffer)) {
      return wrong(node, fmt::format("{} is outside its buffer", plan::describe(location, parts)));
    }
    if (location.chunk % parts != part) {
      return wrong(node, fmt::format("{} is not of the size of part {}", plan::describe(location, parts), part));
    }
    return {};
  };
  for (const Location& read : reads.all()) WEFT_TRY(check_place(read));
  if (writes(step.kind)) {
    WEFT_TRY(check_place(step.destination));
    if (!is_writable(plan_->contract, parts, step.destination)) {
      return wrong(node, fmt::format("{} is the caller's and must survive, but the step writes to it",
                                     plan::describe(step.destination, parts)));
    }
  }
  for (const std::uint32_t before : step.after) {
    if (before >= plan_->steps[rank.index()].size()) {
      return wrong(node, fmt::format("it waits for step {}, which does not exist", before));
    }
  }
  if (!is_transfer(step.kind)) return {};
  if (step.transfer >= plan_->num_transfers) {
    return wrong(node, fmt::format("the plan has only {} transfers", plan_->num_transfers));
  }
  if (step.lane >= plan_->lanes) return wrong(node, fmt::format("lane {} is not one of {}", step.lane, plan_->lanes));
  if (step.peer == rank || step.peer.value() >= plan_->contract.ranks.value()) {
    return wrong(node, fmt::format("rank {} cannot be its peer", step.peer.value()));
  }
  return {};
}

Status Graph::match_transfers() {
  ends_.resize(plan_->num_transfers);
  for (Node node = 0; node < num_nodes(); ++node) {
    const Step& step = this->step(node);
    if (!is_transfer(step.kind)) continue;
    Node& end = step.kind == StepKind::send ? ends_[step.transfer].send : ends_[step.transfer].receive;
    if (end != kNone) return wrong(node, fmt::format("{} is the same end of the same transfer", describe(end)));
    end = node;
  }
  for (std::uint32_t transfer = 0; transfer < ends_.size(); ++transfer) {
    const auto [send, receive] = ends_[transfer];
    if (send == kNone || receive == kNone) {
      if (send != kNone) return wrong(send, "nobody receives it");
      if (receive != kNone) return wrong(receive, "nobody sends it");
      return Error{ErrorCode::invalid_argument, fmt::format("plan {}: transfer {} has no ends", plan_->name, transfer),
                   kCompleteOnly};
    }
    const Step& from = step(send);
    const Step& to = step(receive);
    if (from.peer != rank_of(receive) || to.peer != rank_of(send)) {
      return wrong(send, fmt::format("its other end is {}, and they do not name each other", describe(receive)));
    }
    if (from.lane != to.lane) {
      return wrong(send, fmt::format("it goes by lane {} and is awaited on lane {}", from.lane, to.lane));
    }
    if (from.source.chunk % plan_->parts_per_block != to.destination.chunk % plan_->parts_per_block) {
      return wrong(send, fmt::format("it sends {} into {}, which has another size",
                                     plan::describe(from.source, plan_->parts_per_block),
                                     plan::describe(to.destination, plan_->parts_per_block)));
    }
  }
  return {};
}

/// Runs the plan in mind as the least helpful legal transport does, one without any buffer: a transfer happens when
/// both of its ends have started, and ends both. If this gets stuck, then a push or pull transport would; if it ends,
/// then every transport ends, because the data of an eager one moves no later.
Status Graph::find_order() {
  std::vector<std::uint32_t> waits_for(num_nodes());  // How many of its `after` are not done.
  std::vector<std::uint32_t> first_follower(num_nodes() + 1, 0);
  for (Node node = 0; node < num_nodes(); ++node) {
    waits_for[node] = static_cast<std::uint32_t>(step(node).after.size());
    for (const std::uint32_t before : step(node).after) ++first_follower[node_at(rank_of(node), before) + 1];
  }
  for (Node node = 0; node < num_nodes(); ++node) first_follower[node + 1] += first_follower[node];
  std::vector<Node> followers(first_follower.back());
  std::vector<std::uint32_t> filled(first_follower.begin(), first_follower.end() - 1);
  for (Node node = 0; node < num_nodes(); ++node) {
    for (const std::uint32_t before : step(node).after) followers[filled[node_at(rank_of(node), before)]++] = node;
  }

  std::vector<Node> started;  // Steps whose `after` are done, not looked at yet. First in, first out: rounds in order.
  started.reserve(num_nodes());
  for (Node node = 0; node < num_nodes(); ++node) {
    if (waits_for[node] == 0) started.push_back(node);
  }
  std::vector<bool> has_started(num_nodes(), false);
  order_.reserve(num_nodes());
  const auto end = [&](Node node) {
    order_.push_back(node);
    for (std::uint32_t i = first_follower[node]; i < first_follower[node + 1]; ++i) {
      if (--waits_for[followers[i]] == 0) started.push_back(followers[i]);
    }
  };
  for (std::size_t next = 0; next < started.size(); ++next) {
    const Node node = started[next];
    has_started[node] = true;
    if (!is_transfer(step(node).kind)) {
      end(node);
    } else if (has_started[other_end(node)]) {
      const auto [send, receive] = ends_[step(node).transfer];
      end(send);
      end(receive);
    }
  }
  if (order_.size() != num_nodes()) return deadlock(waits_for);
  return {};
}

std::vector<std::uint32_t> Graph::depths() const {
  std::vector<std::uint32_t> depths(num_nodes(), 0);
  for (const Node node : order_) {
    for (const std::uint32_t before : step(node).after) {
      depths[node] = std::max(depths[node], depths[node_at(rank_of(node), before)]);
    }
    const Node send = send_of(node);
    if (send != kNone) depths[node] = std::max(depths[node], depths[send] + 1);
  }
  return depths;
}

/// Every stuck step waits for another stuck one: walking from one to the next must come back.
Error Graph::deadlock(const std::vector<std::uint32_t>& waits_for) const {
  std::vector<bool> is_done(num_nodes(), false);
  for (const Node node : order_) is_done[node] = true;
  const auto stuck = std::find(is_done.begin(), is_done.end(), false);
  auto node = static_cast<Node>(stuck - is_done.begin());
  std::vector<std::uint32_t> seen_at(num_nodes(), kNone);
  std::vector<Node> walk;
  while (seen_at[node] == kNone) {
    seen_at[node] = static_cast<std::uint32_t>(walk.size());
    walk.push_back(node);
    if (waits_for[node] == 0) {
      node = other_end(node);
      continue;
    }
    for (const std::uint32_t before : step(node).after) {
      const Node previous = node_at(rank_of(node), before);
      if (is_done[previous]) continue;
      node = previous;
      break;
    }
  }
  constexpr std::size_t kMaxNamed = 8;  // A longer cycle says no more to a reader.
  std::string cycle;
  for (std::size_t i = seen_at[node]; i < walk.size(); ++i) {
    if (i - seen_at[node] == kMaxNamed) {
      cycle += fmt::format("... ({} more) waits for ", walk.size() - i);
      break;
    }
    cycle += describe(walk[i]) + " waits for ";
  }
  return Error{ErrorCode::invalid_argument,
               fmt::format("plan {}: it never ends: {}{}", plan_->name, cycle, describe(node))};
}

}  // namespace weft::collectives::plan
