#include "collectives/plan/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <queue>
#include <tuple>
#include <unordered_map>

#include "collectives/plan/graph.h"

namespace weft::collectives::plan {
namespace {

/// A processor that ranks take turns on.
struct Slot {
  double free_at_ns = 0;
  Rank last_rank;
  bool was_used = false;
};

struct Link {
  LinkCost cost;
  double free_at_ns = 0;
};

/// What all transfers of a host to and from others share.
struct Port {
  double leaving_free_at_ns = 0;
  double entering_free_at_ns = 0;
};

/// A step becomes ready at a time, and the earliest goes first. Of several, sends do: they cost their rank little, and
/// others wait for them. Then the lower node, so that the answer is one.
struct Ready {
  double at_ns;
  bool is_send;
  Graph::Node node;
  bool operator>(const Ready& other) const {
    return std::tuple(at_ns, !is_send, node) > std::tuple(other.at_ns, !other.is_send, other.node);
  }
};

class Simulation {
 public:
  Simulation(const Graph& graph, const Shape& shape, const CostModel& model, std::uint64_t count_elems,
             std::uint32_t elem_size_bytes)
      : graph_(graph),
        shape_(shape),
        model_(model),
        count_elems_(count_elems),
        elem_size_bytes_(elem_size_bytes),
        slots_(shape.num_hosts()),
        ports_(shape.num_hosts()),
        rank_free_at_ns_(shape.ranks().value(), 0),
        waits_for_(graph.num_nodes()),
        ready_at_ns_(graph.num_nodes(), 0),
        first_follower_(graph.num_nodes() + 1, 0) {
    for (std::uint32_t host = 0; host < shape.num_hosts(); ++host) {
      const auto ranks = static_cast<std::uint32_t>(shape.ranks_of(host).size());
      // With a slot for every rank nothing is shared, and a rank's own time is all that counts.
      if (model.slots_per_host != 0 && model.slots_per_host < ranks) slots_[host].resize(model.slots_per_host);
    }
    list_followers();
  }

  double run() {
    for (Graph::Node node = 0; node < graph_.num_nodes(); ++node) {
      if (waits_for_[node] == 0) push(0, node);
    }
    double end_ns = 0;
    while (!queue_.empty()) {
      const Ready next = queue_.top();
      queue_.pop();
      end_ns = std::max(end_ns, execute(next.node, next.at_ns));
    }
    return end_ns;
  }

 private:
  void list_followers();
  double execute(Graph::Node node, double ready_ns);
  double occupy(Rank rank, double ready_ns, double busy_ns);
  double pass_hosts(std::uint32_t from, std::uint32_t to, double ready_ns, double bytes);
  void push(double at_ns, Graph::Node node) { queue_.push({at_ns, graph_.step(node).kind == StepKind::send, node}); }
  void follow(Graph::Node follower, double done_ns) {
    ready_at_ns_[follower] = std::max(ready_at_ns_[follower], done_ns);
    if (--waits_for_[follower] == 0) push(ready_at_ns_[follower], follower);
  }
  Link& link(Rank from, Rank to) {
    const auto [entry, is_new] = links_.try_emplace(std::uint64_t{from.value()} << 32 | to.value());
    if (is_new) entry->second.cost = model_.link(from, to);
    return entry->second;
  }
  /// The parts of a block are balanced: the first `count % k` have one element more.
  [[nodiscard]] double bytes_of(const Location& location) const {
    const std::uint32_t parts = graph_.plan().parts_per_block;
    const std::uint64_t elems = count_elems_ / parts + (location.chunk % parts < count_elems_ % parts ? 1 : 0);
    return static_cast<double>(elems) * elem_size_bytes_;
  }

  const Graph& graph_;
  const Shape& shape_;
  const CostModel& model_;
  std::uint64_t count_elems_;
  std::uint32_t elem_size_bytes_;
  std::vector<std::vector<Slot>> slots_;  ///< Per host that has fewer than ranks; else empty.
  std::vector<Port> ports_;               ///< Per host.
  std::vector<double> rank_free_at_ns_;
  std::vector<std::uint32_t> waits_for_;
  std::vector<double> ready_at_ns_;
  std::vector<std::uint32_t> first_follower_;
  std::vector<Graph::Node> followers_;
  std::unordered_map<std::uint64_t, Link> links_;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> queue_;
};

void Simulation::list_followers() {
  for (Graph::Node node = 0; node < graph_.num_nodes(); ++node) {
    const Rank rank = graph_.rank_of(node);
    waits_for_[node] = static_cast<std::uint32_t>(graph_.step(node).after.size());
    if (graph_.send_of(node) != Graph::kNone) ++waits_for_[node];  // The data is there when the send says so.
    for (const std::uint32_t before : graph_.step(node).after) ++first_follower_[graph_.node_at(rank, before) + 1];
  }
  for (Graph::Node node = 0; node < graph_.num_nodes(); ++node) first_follower_[node + 1] += first_follower_[node];
  followers_.resize(first_follower_.back());
  std::vector<std::uint32_t> filled(first_follower_.begin(), first_follower_.end() - 1);
  for (Graph::Node node = 0; node < graph_.num_nodes(); ++node) {
    const Rank rank = graph_.rank_of(node);
    for (const std::uint32_t before : graph_.step(node).after) {
      followers_[filled[graph_.node_at(rank, before)]++] = node;
    }
  }
}

/// Lets the rank compute as soon as it and a slot of its host are free; answers when it is done. Steps come in the
/// order in which they became ready, so none that comes later has a better claim.
double Simulation::occupy(Rank rank, double ready_ns, double busy_ns) {
  double& rank_free_at_ns = rank_free_at_ns_[rank.index()];
  const double earliest_ns = std::max(ready_ns, rank_free_at_ns);
  Slot* chosen = nullptr;
  double start_ns = earliest_ns;
  for (Slot& slot : slots_[shape_.host_of(rank)]) {
    const double slot_start_ns = std::max(earliest_ns, slot.free_at_ns);
    // Of slots that are free in time, the one that was busy the longest: it leaves the least idle time behind. While
    // the rank itself is busy, that is the slot it is on.
    const bool is_better = chosen == nullptr || slot_start_ns < start_ns ||
                           (slot_start_ns == start_ns && slot.free_at_ns > chosen->free_at_ns);
    if (!is_better) continue;
    chosen = &slot;
    start_ns = slot_start_ns;
  }
  double end_ns = start_ns + busy_ns;
  if (chosen != nullptr) {
    if (chosen->was_used && chosen->last_rank != rank) end_ns += model_.switch_ns;
    *chosen = {end_ns, rank, true};
  }
  rank_free_at_ns = end_ns;
  return end_ns;
}

/// When `bytes` have left one host and entered the other, whose ports all their transfers share; they take turns.
double Simulation::pass_hosts(std::uint32_t from, std::uint32_t to, double ready_ns, double bytes) {
  if (from == to || model_.host_bytes_per_ns <= 0) return ready_ns;
  double& leaving_free_at_ns = ports_[from].leaving_free_at_ns;
  double& entering_free_at_ns = ports_[to].entering_free_at_ns;
  const double takes_ns = bytes / model_.host_bytes_per_ns;
  // The ports buffer: one that waits at the second does not hold up the first.
  leaving_free_at_ns = std::max(ready_ns, leaving_free_at_ns) + takes_ns;
  entering_free_at_ns = std::max(leaving_free_at_ns, entering_free_at_ns + takes_ns);
  return entering_free_at_ns;
}

double Simulation::execute(Graph::Node node, double ready_ns) {
  const Step& step = graph_.step(node);
  const Rank rank = graph_.rank_of(node);
  const double bytes = bytes_of(step.kind == StepKind::send ? step.source : step.destination);
  double busy_ns = model_.local_step_ns;
  switch (step.kind) {
    case StepKind::send: {
      const LinkCost& cost = link(rank, step.peer).cost;
      busy_ns = cost.per_step_ns + (cost.end_bytes_per_ns > 0 ? bytes / cost.end_bytes_per_ns : 0);
      break;
    }
    case StepKind::receive:
    case StepKind::receive_reduce: {
      const LinkCost& cost = link(step.peer, rank).cost;
      const bool is_fresh =
          cost.fresh_bytes_per_ns > 0 && graph_.step(graph_.send_of(node)).source.buffer != Buffer::input;
      const double move_ns = bytes / (is_fresh ? cost.fresh_bytes_per_ns : cost.bytes_per_ns);
      busy_ns = cost.per_step_ns + (cost.moved_by_processor ? move_ns : 0);
      if (cost.end_bytes_per_ns > 0) busy_ns += bytes / cost.end_bytes_per_ns;
      // Straight from the peer's memory the reduction is done while the bytes move: the slower of the two counts.
      if (step.kind == StepKind::receive_reduce) {
        const double reduce_ns = bytes / model_.reduce_bytes_per_ns;
        busy_ns = cost.moved_by_processor ? cost.per_step_ns + std::max(reduce_ns, move_ns) : busy_ns + reduce_ns;
      }
      break;
    }
    case StepKind::copy: busy_ns += bytes / model_.copy_bytes_per_ns; break;
    case StepKind::reduce: busy_ns += bytes / model_.reduce_bytes_per_ns; break;
  }
  const double end_ns = occupy(rank, ready_ns, busy_ns);
  if (step.kind == StepKind::send) {
    Link& used = link(rank, step.peer);
    double arrival_ns = end_ns;
    if (!used.cost.moved_by_processor) {
      arrival_ns = std::max(end_ns, used.free_at_ns) + bytes / used.cost.bytes_per_ns;
      used.free_at_ns = arrival_ns;
      arrival_ns = std::max(arrival_ns, pass_hosts(shape_.host_of(rank), shape_.host_of(step.peer), end_ns, bytes));
    }
    follow(graph_.other_end(node), arrival_ns + used.cost.latency_ns);
  }
  for (std::uint32_t i = first_follower_[node]; i < first_follower_[node + 1]; ++i) follow(followers_[i], end_ns);
  return end_ns;
}

}  // namespace

Result<Nanos> predict(const Plan& plan, const Shape& shape, const CostModel& model, std::uint64_t count_elems,
                      std::uint32_t elem_size_bytes) {
  if (shape.ranks() != plan.contract.ranks) {
    return Error{ErrorCode::invalid_argument, fmt::format("plan {} is for {} ranks, the shape has {}", plan.name,
                                                          plan.contract.ranks.value(), shape.ranks().value())};
  }
  WEFT_TRY_ASSIGN(const Graph graph, Graph::create(plan));
  const double end_ns = Simulation{graph, shape, model, count_elems, elem_size_bytes}.run();
  // An endless link (0 bytes per ns) is infinitely slow, not undefined.
  constexpr auto kMax = static_cast<double>(Nanos::max().count() / 2);
  return Nanos{static_cast<Nanos::rep>(std::llround(end_ns < kMax ? end_ns : kMax))};
}

}  // namespace weft::collectives::plan
