#include <fmt/format.h>

#include <map>
#include <vector>

#include "collectives/plan/buffers.h"
#include "tests/fakes/plan_oracle.h"

namespace weft::fakes {
namespace {

using namespace collectives;
using namespace collectives::plan;

/// Four events of every step, in this order, as plan.h gives them.
enum Event : std::size_t { start, read, write, done };
constexpr std::size_t kEvents = 4;

class Closure {
 public:
  explicit Closure(std::size_t num_events)
      : words_((num_events + 63) / 64), bits_(num_events * words_), next_(num_events) {}
  void add_edge(std::size_t from, std::size_t to) { next_[from].push_back(to); }
  /// Depth first; the graph has no cycle.
  void close() {
    std::vector<std::uint8_t> state(next_.size(), 0);
    for (std::size_t i = 0; i < next_.size(); ++i) visit(i, state);
  }
  [[nodiscard]] bool reaches(std::size_t from, std::size_t to) const {
    return (bits_[from * words_ + to / 64] >> (to % 64) & 1) != 0;
  }

 private:
  void visit(std::size_t root, std::vector<std::uint8_t>& state) {
    if (state[root] != 0) return;
    std::vector<std::pair<std::size_t, std::size_t>> path{{root, 0}};
    state[root] = 1;
    while (!path.empty()) {
      const std::size_t node = path.back().first;
      if (path.back().second < next_[node].size()) {
        const std::size_t child = next_[node][path.back().second++];
        if (state[child] == 0) {
          state[child] = 1;
          path.emplace_back(child, 0);
        }
        continue;
      }
      for (const std::size_t child : next_[node]) {
        bits_[node * words_ + child / 64] |= std::uint64_t{1} << (child % 64);
        for (std::size_t word = 0; word < words_; ++word) bits_[node * words_ + word] |= bits_[child * words_ + word];
      }
      path.pop_back();
    }
  }

  std::size_t words_;
  std::vector<std::uint64_t> bits_;
  std::vector<std::vector<std::size_t>> next_;
};

struct Access {
  std::size_t step;
  Event event;
  bool is_write;
};

}  // namespace

Status find_race(const Plan& plan) {
  std::vector<std::size_t> first;
  std::size_t num_steps = 0;
  for (const auto& steps : plan.steps) {
    first.push_back(num_steps);
    num_steps += steps.size();
  }
  Closure closure{num_steps * kEvents};
  std::map<Location, std::vector<Access>> accesses;
  std::map<std::uint32_t, std::size_t> send_of;
  const auto event = [](std::size_t step, Event which) { return step * kEvents + which; };
  for (std::size_t rank = 0; rank < plan.steps.size(); ++rank) {
    for (std::size_t i = 0; i < plan.steps[rank].size(); ++i) {
      if (plan.steps[rank][i].kind == StepKind::send) send_of[plan.steps[rank][i].transfer] = first[rank] + i;
    }
  }
  for (std::size_t rank = 0; rank < plan.steps.size(); ++rank) {
    for (std::size_t i = 0; i < plan.steps[rank].size(); ++i) {
      const Step& step = plan.steps[rank][i];
      const std::size_t own = first[rank] + i;
      for (std::size_t e = Event::start; e < Event::done; ++e)
        closure.add_edge(own * kEvents + e, own * kEvents + e + 1);
      for (const std::uint32_t before : step.after) {
        closure.add_edge(event(first[rank] + before, Event::done), event(own, Event::start));
      }
      if (step.kind == StepKind::receive || step.kind == StepKind::receive_reduce) {
        // The write begins after the send started, and the receive completes after the source was read.
        closure.add_edge(event(send_of[step.transfer], Event::start), event(own, Event::write));
        closure.add_edge(event(send_of[step.transfer], Event::read), event(own, Event::done));
      }
      const Reads reads = reads_of(step);
      for (const Location& read : reads.all()) accesses[read].push_back({own, Event::read, false});
      if (writes(step.kind)) accesses[step.destination].push_back({own, Event::write, true});
    }
  }
  closure.close();

  // An access ends with its step's completion at the latest; a send's read ends before its receive completes, too,
  // which the edge from its Event::read says.
  const auto comes_before = [&](const Access& a, const Access& b) {
    const bool is_send = a.event == Event::read && !a.is_write;
    return closure.reaches(event(a.step, Event::done), event(b.step, b.event)) ||
           (is_send && closure.reaches(event(a.step, Event::read), event(b.step, b.event)));
  };
  for (const auto& [location, all] : accesses) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t j = i + 1; j < all.size(); ++j) {
        if (all[i].step == all[j].step || (!all[i].is_write && !all[j].is_write)) continue;
        if (comes_before(all[i], all[j]) || comes_before(all[j], all[i])) continue;
        return Error{ErrorCode::invalid_argument,
                     fmt::format("steps {} and {} race for chunk {} of rank {}", all[i].step, all[j].step,
                                 location.chunk, location.rank.value())};
      }
    }
  }
  return {};
}

}  // namespace weft::fakes
