#include "collectives/plan/simulation.h"

#include <cmath>

namespace weft::collectives::plan {

Simulation::Slices Simulation::slices_of(const Graph& graph, const CostModel& model, std::uint64_t count_elems,
                                         std::uint32_t elem_size_bytes) {
  const std::uint32_t parts = graph.plan().parts_per_block;
  const double part_bytes = std::ceil(static_cast<double>(count_elems) / parts) * elem_size_bytes;
  // Far beyond what any part can be; larger numbers do not fit.
  const auto whole_bytes = static_cast<std::uint64_t>(std::min(part_bytes, 0x1p62));
  if (model.slicing.num_slices(whole_bytes) == 1) return {};
  Slices slices;
  slices.total = model.slicing.num_slices(whole_bytes);
  slices.in_flight = std::max(1U, model.slicing.in_flight);
  slices.simulated = static_cast<std::uint32_t>(std::min<std::uint64_t>(slices.total, 2ULL * slices.in_flight));
  if (std::size_t{slices.simulated} * graph.num_nodes() > kMaxSlicedSteps) return {};
  return slices;
}

Simulation::Simulation(const Graph& graph, const Shape& shape, const CostModel& model, std::uint64_t count_elems,
                       std::uint32_t elem_size_bytes)
    : graph_(graph),
      shape_(shape),
      model_(model),
      count_elems_(count_elems),
      elem_size_bytes_(elem_size_bytes),
      slices_(slices_of(graph, model, count_elems, elem_size_bytes)),
      hosts_(shape.num_hosts()),
      ports_(shape.num_hosts()),
      processors_(shape.ranks().value()),
      waits_for_(graph.num_nodes() * slices_.simulated),
      ready_at_ns_(graph.num_nodes() * slices_.simulated, 0),
      steps_left_(shape.ranks().value() * slices_.simulated, 0),
      slice_end_ns_(slices_.simulated, 0),
      first_follower_(graph.num_nodes() + 1, 0) {
  for (std::uint32_t host = 0; host < shape.num_hosts(); ++host) {
    const auto ranks = static_cast<std::uint32_t>(shape.ranks_of(host).size());
    // With a slot for every rank nothing is shared, and a rank's own time is all that counts.
    if (model.slots_per_host != 0 && model.slots_per_host < ranks) hosts_[host].slots.resize(model.slots_per_host);
  }
  list_followers();
  count_what_steps_wait_for();
}

double Simulation::run() {
  for (Instance instance = 0; instance < waits_for_.size(); ++instance) {
    if (waits_for_[instance] == 0) events_.push({0, false, instance});
  }
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    if (event.is_done) {
      go_on(Rank{event.number}, event.at_ns);
    } else {
      take(event.number, event.at_ns);
    }
  }
  return end_of_all_slices();
}

void Simulation::list_followers() {
  for (Graph::Node node = 0; node < graph_.num_nodes(); ++node) {
    const Rank rank = graph_.rank_of(node);
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

void Simulation::count_what_steps_wait_for() {
  const std::uint32_t first_slices = std::min(slices_.in_flight, slices_.simulated);
  for (Processor& processor : processors_) processor.next_slice = first_slices;
  for (Instance instance = 0; instance < waits_for_.size(); ++instance) {
    const Graph::Node node = node_of(instance);
    const std::uint32_t slice = instance / graph_.num_nodes();
    waits_for_[instance] = static_cast<std::uint32_t>(graph_.step(node).after.size());
    if (graph_.send_of(node) != Graph::kNone) ++waits_for_[instance];  // The data is there when the send says so.
    if (slice >= first_slices) ++waits_for_[instance];                 // The rank begins the slice when another ends.
    ++steps_left_[slice * processors_.size() + graph_.rank_of(node).index()];
  }
}

/// When `bytes` have left one host and entered the other, whose ports all their transfers share; they take turns.
double Simulation::pass_hosts(std::uint32_t from, std::uint32_t to, double ready_ns, double bytes) {
  if (from == to || model_.host_bytes_per_ns <= 0) return ready_ns;
  ports_[from].leaving_ns += bytes / model_.host_bytes_per_ns;
  ports_[to].entering_ns += bytes / model_.host_bytes_per_ns;
  double& leaving_free_at_ns = ports_[from].leaving_free_at_ns;
  double& entering_free_at_ns = ports_[to].entering_free_at_ns;
  const double takes_ns = bytes / model_.host_bytes_per_ns;
  // The ports buffer: one that waits at the second does not hold up the first.
  leaving_free_at_ns = std::max(ready_ns, leaving_free_at_ns) + takes_ns;
  entering_free_at_ns = std::max(leaving_free_at_ns, entering_free_at_ns + takes_ns);
  return entering_free_at_ns;
}

/// Does the step from `start_ns` on; answers when the rank is done with it.
double Simulation::execute(Instance instance, double start_ns) {
  const Graph::Node node = node_of(instance);
  const Instance slice_begin = instance - node;
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
  const double end_ns = start_ns + busy_ns;
  processors_[rank.index()].busy_ns += busy_ns;
  if (step.kind == StepKind::send) {
    Link& used = link(rank, step.peer);
    double arrival_ns = end_ns;
    if (!used.cost.moved_by_processor) {
      arrival_ns = std::max(end_ns, used.free_at_ns) + bytes / used.cost.bytes_per_ns;
      used.busy_ns += bytes / used.cost.bytes_per_ns;
      used.free_at_ns = arrival_ns;
      arrival_ns = std::max(arrival_ns, pass_hosts(shape_.host_of(rank), shape_.host_of(step.peer), end_ns, bytes));
    }
    follow(slice_begin + graph_.other_end(node), arrival_ns + used.cost.latency_ns);
  }
  for (std::uint32_t i = first_follower_[node]; i < first_follower_[node + 1]; ++i) {
    follow(slice_begin + followers_[i], end_ns);
  }
  end_step(instance, end_ns);
  return end_ns;
}

/// Lets the rank begin another slice if this was the last step of one.
void Simulation::end_step(Instance instance, double end_ns) {
  const Rank rank = graph_.rank_of(node_of(instance));
  const std::uint32_t slice = instance / graph_.num_nodes();
  slice_end_ns_[slice] = std::max(slice_end_ns_[slice], end_ns);
  if (--steps_left_[slice * processors_.size() + rank.index()] > 0) return;
  Processor& processor = processors_[rank.index()];
  if (processor.next_slice == slices_.simulated) return;
  const std::uint32_t next = processor.next_slice++;
  const std::size_t num_steps = graph_.plan().steps[rank.index()].size();
  for (std::uint32_t step = 0; step < num_steps; ++step) {
    follow(next * graph_.num_nodes() + graph_.node_at(rank, step), end_ns);
  }
}

/// How long the one that is used the most was used: no schedule is faster.
double Simulation::busiest_ns() const {
  double busiest = 0;
  for (const auto& [ranks, link] : links_) busiest = std::max(busiest, link.busy_ns);
  for (std::uint32_t host = 0; host < hosts_.size(); ++host) {
    busiest = std::max({busiest, ports_[host].leaving_ns, ports_[host].entering_ns});
    double together_ns = 0;
    for (const Rank rank : shape_.ranks_of(host)) {
      busiest = std::max(busiest, processors_[rank.index()].busy_ns);
      together_ns += processors_[rank.index()].busy_ns;
    }
    const std::size_t slots = hosts_[host].slots.size();
    if (slots > 0) busiest = std::max(busiest, together_ns / static_cast<double>(slots));
  }
  return busiest;
}

double Simulation::end_of_all_slices() const {
  const double end_ns = *std::ranges::max_element(slice_end_ns_);
  if (slices_.simulated == slices_.total) return end_ns;
  // The pipeline is full once the first slices in flight are through, and then the pace stays what it is. Ranks that
  // share slots may do their slices one rank after the other, so that the last ends say too little.
  const double full_ns = *std::max_element(slice_end_ns_.begin(), slice_end_ns_.begin() + slices_.in_flight);
  const double pace_ns =
      std::max((end_ns - full_ns) / (slices_.simulated - slices_.in_flight), busiest_ns() / slices_.simulated);
  return end_ns + pace_ns * static_cast<double>(slices_.total - slices_.simulated);
}

}  // namespace weft::collectives::plan
