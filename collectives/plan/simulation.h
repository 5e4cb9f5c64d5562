#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "collectives/plan/cost.h"
#include "collectives/plan/graph.h"

namespace weft::collectives::plan {

/// Runs a plan on a model: what predict() answers from.
class Simulation {
 public:
  Simulation(const Graph& graph, const Shape& shape, const CostModel& model, std::uint64_t count_elems,
             std::uint32_t elem_size_bytes);
  /// When the last step of all ranks and slices is done. Called once.
  double run();

 private:
  /// A processor that ranks take turns on.
  struct Slot {
    std::optional<Rank> last_rank;
    bool is_free = true;
  };

  struct Link {
    LinkCost cost;
    double free_at_ns = 0;
    double busy_ns = 0;
  };

  /// What all transfers of a host to and from others share.
  struct Port {
    double leaving_free_at_ns = 0;
    double entering_free_at_ns = 0;
    double leaving_ns = 0;  ///< Of all transfers so far.
    double entering_ns = 0;
  };

  /// A step of one slice: slice * nodes + node.
  using Instance = std::uint32_t;

  struct Host {
    std::vector<Slot> slots;    ///< Empty if there is one for every rank.
    std::vector<Rank> waiting;  ///< For a slot, with steps that are ready.
  };

  /// A step becomes ready, or a rank has done one (what becomes ready at the same time comes first, so that the rank
  /// can choose among all). Then the lower instance or rank, so that the answer is one.
  struct Event {
    double at_ns;
    bool is_done;
    std::uint32_t number;  ///< The instance or the rank.
    bool operator>(const Event& other) const {
      return std::tuple(at_ns, is_done, number) > std::tuple(other.at_ns, other.is_done, other.number);
    }
  };

  struct Ready {
    double since_ns;
    Instance instance;
  };

  /// What a rank does and has to do. Of the steps that are ready, sends go first: they cost their rank little, and
  /// others wait for them.
  struct Processor {
    bool is_busy = false;  ///< With a step, or waiting for a slot.
    Slot* slot = nullptr;  ///< Held, if its host has too few.
    double busy_ns = 0;    ///< So far.
    std::uint32_t next_slice = 0;
    std::deque<Ready> sends;  ///< That are ready, the first one for the longest.
    std::deque<Ready> others;

    [[nodiscard]] bool has_ready() const noexcept { return !sends.empty() || !others.empty(); }
    /// Since when there has been something to do.
    [[nodiscard]] double ready_since_ns() const noexcept {
      if (sends.empty() || others.empty()) return (sends.empty() ? others : sends).front().since_ns;
      return std::min(sends.front().since_ns, others.front().since_ns);
    }
    Instance take_next() {
      std::deque<Ready>& from = sends.empty() ? others : sends;
      const Instance next = from.front().instance;
      from.pop_front();
      return next;
    }
  };

  struct Slices {
    std::uint64_t total = 1;      ///< Of every part.
    std::uint32_t simulated = 1;  ///< The first so many of them.
    std::uint32_t in_flight = 1;
  };

  /// How the parts of the plan are cut.
  static Slices slices_of(const Graph& graph, const CostModel& model, std::uint64_t count_elems,
                          std::uint32_t elem_size_bytes);
  void list_followers();
  void count_what_steps_wait_for();
  void take(Instance instance, double now_ns);
  void go_on(Rank rank, double now_ns);
  void fill_slots(Host& host, double now_ns);
  void start_on(Slot& slot, Rank rank, double now_ns);
  void start_next(Rank rank, double start_ns);
  double execute(Instance instance, double start_ns);
  double pass_hosts(std::uint32_t from, std::uint32_t to, double ready_ns, double bytes);
  void end_step(Instance instance, double end_ns);
  [[nodiscard]] double busiest_ns() const;
  [[nodiscard]] double end_of_all_slices() const;
  [[nodiscard]] Graph::Node node_of(Instance instance) const { return instance % graph_.num_nodes(); }
  void follow(Instance follower, double done_ns) {
    ready_at_ns_[follower] = std::max(ready_at_ns_[follower], done_ns);
    if (--waits_for_[follower] == 0) events_.push({ready_at_ns_[follower], false, follower});
  }
  Link& link(Rank from, Rank to) {
    const auto [entry, is_new] = links_.try_emplace(std::uint64_t{from.value()} << 32 | to.value());
    if (is_new) entry->second.cost = model_.link(from, to);
    return entry->second;
  }
  /// Of one slice. The parts of a block are balanced: the first `count % k` have one element more.
  [[nodiscard]] double bytes_of(const Location& location) const {
    const std::uint32_t parts = graph_.plan().parts_per_block;
    const std::uint64_t elems = count_elems_ / parts + (location.chunk % parts < count_elems_ % parts ? 1 : 0);
    return static_cast<double>(elems) * elem_size_bytes_ / static_cast<double>(slices_.total);
  }

  const Graph& graph_;
  const Shape& shape_;
  const CostModel& model_;
  std::uint64_t count_elems_;
  std::uint32_t elem_size_bytes_;
  Slices slices_;
  std::vector<Host> hosts_;
  std::vector<Port> ports_;                    ///< Per host.
  std::vector<Processor> processors_;          ///< Per rank.
  std::vector<std::uint32_t> waits_for_;       ///< Per instance.
  std::vector<double> ready_at_ns_;            ///< Per instance.
  std::vector<std::uint32_t> steps_left_;      ///< Per slice and rank.
  std::vector<double> slice_end_ns_;           ///< Of the last step so far.
  std::vector<std::uint32_t> first_follower_;  ///< Per node, in followers_; alike in all slices.
  std::vector<Graph::Node> followers_;
  std::unordered_map<std::uint64_t, Link> links_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace weft::collectives::plan
