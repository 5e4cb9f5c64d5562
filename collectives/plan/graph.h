#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "collectives/plan/plan.h"

namespace weft::collectives::plan {

/// A complete plan as one graph: its steps numbered through all ranks, the ends of transfers joined, in an order in
/// which they can run. The plan must outlive it.
class Graph {
 public:
  using Node = std::uint32_t;
  static constexpr Node kNone = std::numeric_limits<Node>::max();

  /// Checks the plan's structure (bounds of everything, one send and one receive per transfer, right peers, equal
  /// sizes) and that it can end. Errors: invalid_argument — names the first step that is wrong, or the steps that wait
  /// for each other. Cost:   linear in steps, edges and transfers.
  static Result<Graph> create(const Plan& plan);

  [[nodiscard]] const Plan& plan() const noexcept { return *plan_; }
  [[nodiscard]] std::uint32_t num_nodes() const noexcept { return static_cast<std::uint32_t>(steps_.size()); }
  [[nodiscard]] const Step& step(Node node) const noexcept { return *steps_[node]; }
  [[nodiscard]] Rank rank_of(Node node) const noexcept { return ranks_[node]; }
  /// The node of a rank's step; `after` lists positions.
  [[nodiscard]] Node node_at(Rank rank, std::uint32_t position) const noexcept {
    return first_of_[rank.index()] + position;
  }
  /// The other end of a transfer.
  [[nodiscard]] Node other_end(Node node) const noexcept {
    const Ends& ends = ends_[step(node).transfer];
    return ends.send == node ? ends.receive : ends.send;
  }
  /// The send of a receive; kNone for other steps.
  [[nodiscard]] Node send_of(Node node) const noexcept {
    const StepKind kind = step(node).kind;
    return kind == StepKind::receive || kind == StepKind::receive_reduce ? ends_[step(node).transfer].send : kNone;
  }
  /// All nodes; a step after its `after` and a receive after its send.
  [[nodiscard]] const std::vector<Node>& order() const noexcept { return order_; }
  /// Per node: how many transfers the longest chain of steps that leads to it has, its own included if it is a receive.
  [[nodiscard]] std::vector<std::uint32_t> depths() const;
  /// For people.
  [[nodiscard]] std::string describe(Node node) const;

 private:
  struct Ends {
    Node send = kNone;
    Node receive = kNone;
  };
  explicit Graph(const Plan& plan) : plan_(&plan) {}
  [[nodiscard]] Status number_steps();
  [[nodiscard]] Status check_step(Node node) const;
  [[nodiscard]] Status match_transfers();
  [[nodiscard]] Status find_order();
  [[nodiscard]] Error deadlock(const std::vector<std::uint32_t>& waits_for) const;
  [[nodiscard]] Error wrong(Node node, const std::string& what) const;

  const Plan* plan_;
  std::vector<const Step*> steps_;
  std::vector<Rank> ranks_;
  std::vector<Node> first_of_;  ///< Per rank.
  std::vector<Ends> ends_;      ///< Per transfer.
  std::vector<Node> order_;
};

}  // namespace weft::collectives::plan
