#include "collectives/plan/races.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "collectives/plan/buffers.h"
#include "collectives/plan/describe.h"

// What "ordered" means, and why it holds on every transport.
//
// A step accesses memory between its start and its completion; `after` makes a completion come before a start. So a way
// of local edges from X to Y orders all accesses of X before all of Y. A way may also go from a send S to its receive
// R:
//
// - A way that begins X = S -> R: the source was read before the data moved into R's destination, hence before R
// completed.
//   An eager transport reads before it sends, a push one while it writes to the receiver, a pull one while the receiver
//   fetches: each time the read is over when R completes. So S's read comes before all that follows R.
// - A way that passes P -> S -> R -> N: P completed before S started; the data moved after S started, and before R
//   completed; R completed before N starts. So P comes before N.
// - A way that ends S -> R = Y: the data lands in R's destination only after S started, so what came before S's start
// comes
//   before the *write* of R. But R itself may have started long ago: a receive_reduce may have read its operand
//   already. So the read of an operand needs a way whose last edge is local; nothing else has incoming edges that are
//   not.
//
// That R started says nothing to S (an eager send completes alone), so there is no edge from a receive to its send.
//
// It is enough to look at neighbours: in any order that respects the edges, a write must follow the write before it and
// all reads since; a read must follow the last write. Ways concatenate, so the pairs further apart are ordered, too.

namespace weft::collectives::plan {
namespace {

/// Must `earlier` come before `later`, by a way whose last edge is local?
struct Question {
  Graph::Node earlier;
  Graph::Node later;
  bool needs_local_end;
  Location location;
};

class RaceFinder {
 public:
  RaceFinder(const Graph& graph, const LocationNumbers& numbers) : graph_(graph), uses_(numbers.count()) {
    position_.resize(graph.num_nodes());
    for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) position_[graph.order()[i]] = i;
    for (const Graph::Node node : graph.order()) look_at(node, numbers);
  }

  Status answer();

 private:
  struct Use {
    Graph::Node writer = Graph::kNone;
    std::vector<Graph::Node> readers;  ///< Since that write.
  };

  /// 256 sources a pass: the masks of a 16k-step plan then stay inside the second-level cache (512 KiB).
  static constexpr std::size_t kWords = 4;
  static constexpr std::size_t kSources = kWords * 64;
  using Mask = std::array<std::uint64_t, kWords>;

  void look_at(Graph::Node node, const LocationNumbers& numbers);
  void ask(Graph::Node earlier, Graph::Node later, bool needs_local_end, const Location& location);
  [[nodiscard]] bool is_near(const Question& question) const;
  [[nodiscard]] Status answer_batch(std::span<const Question> batch);

  const Graph& graph_;
  std::vector<Use> uses_;
  std::vector<std::uint32_t> position_;  ///< In the graph's order.
  std::vector<Question> open_;
  std::vector<Mask> reached_by_;  ///< Per node: which sources of the batch come before its completion.
  std::vector<std::uint16_t> source_index_;
};

void RaceFinder::look_at(Graph::Node node, const LocationNumbers& numbers) {
  const Step& step = graph_.step(node);
  const Reads reads = reads_of(step);
  for (const Location& read : reads.all()) {
    Use& use = uses_[numbers.of(read)];
    if (use.writer != Graph::kNone) ask(use.writer, node, /*needs_local_end=*/true, read);
  }
  if (writes(step.kind)) {
    Use& use = uses_[numbers.of(step.destination)];
    for (const Graph::Node reader : use.readers) ask(reader, node, /*needs_local_end=*/false, step.destination);
    if (use.readers.empty() && use.writer != Graph::kNone) {
      ask(use.writer, node, /*needs_local_end=*/false, step.destination);
    }
  }
  for (const Location& read : reads.all()) uses_[numbers.of(read)].readers.push_back(node);
  if (writes(step.kind)) {
    Use& use = uses_[numbers.of(step.destination)];
    use.writer = node;
    use.readers.clear();
  }
}

void RaceFinder::ask(Graph::Node earlier, Graph::Node later, bool needs_local_end, const Location& location) {
  const Question question{earlier, later, needs_local_end, location};
  if (!is_near(question)) open_.push_back(question);
}

/// Most hazards are edges themselves or two edges away; that is cheaper to see than to propagate.
bool RaceFinder::is_near(const Question& question) const {
  const Rank rank = graph_.rank_of(question.later);
  for (const std::uint32_t before : graph_.step(question.later).after) {
    const Graph::Node middle = graph_.node_at(rank, before);
    if (middle == question.earlier) return true;
    for (const std::uint32_t further : graph_.step(middle).after) {
      if (graph_.node_at(rank, further) == question.earlier) return true;
    }
  }
  return false;
}

Status RaceFinder::answer() {
  if (open_.empty()) return {};
  // In order of the source, so that a pass covers a short piece of the graph.
  std::sort(open_.begin(), open_.end(), [&](const Question& a, const Question& b) {
    return position_[a.earlier] != position_[b.earlier] ? position_[a.earlier] < position_[b.earlier]
                                                        : position_[a.later] < position_[b.later];
  });
  reached_by_.resize(graph_.num_nodes());
  source_index_.resize(graph_.num_nodes());
  const std::span<const Question> all = open_;
  for (std::size_t begin = 0; begin < all.size();) {
    std::size_t end = begin;
    std::size_t sources = 0;
    for (; end < all.size(); ++end) {
      const bool is_new = end == begin || all[end].earlier != all[end - 1].earlier;
      if (is_new && sources == kSources) break;
      if (is_new) ++sources;
      source_index_[all[end].earlier] = static_cast<std::uint16_t>(sources - 1);
    }
    WEFT_TRY(answer_batch(all.subspan(begin, end - begin)));
    begin = end;
  }
  return {};
}

Status RaceFinder::answer_batch(std::span<const Question> batch) {
  const std::uint32_t first = position_[batch.front().earlier];
  std::uint32_t last = 0;
  for (const Question& question : batch) last = std::max(last, position_[question.later]);
  std::vector<const Question*> by_later;
  by_later.reserve(batch.size());
  for (const Question& question : batch) by_later.push_back(&question);
  std::sort(by_later.begin(), by_later.end(),
            [&](const Question* a, const Question* b) { return position_[a->later] < position_[b->later]; });

  std::size_t next_source = 0;
  std::size_t next_question = 0;
  for (std::uint32_t i = first; i <= last; ++i) {
    const Graph::Node node = graph_.order()[i];
    Mask before_start{};
    const auto add = [&](Mask& mask, Graph::Node from) {
      if (position_[from] < first) return;  // No source of this batch lies that early.
      for (std::size_t word = 0; word < kWords; ++word) mask[word] |= reached_by_[from][word];
    };
    for (const std::uint32_t before : graph_.step(node).after) {
      add(before_start, graph_.node_at(graph_.rank_of(node), before));
    }
    Mask before_move = before_start;
    if (const Graph::Node send = graph_.send_of(node); send != Graph::kNone) add(before_move, send);

    for (; next_question < by_later.size() && by_later[next_question]->later == node; ++next_question) {
      const Question& question = *by_later[next_question];
      const Mask& known = question.needs_local_end ? before_start : before_move;
      const std::uint16_t source = source_index_[question.earlier];
      if ((known[source / 64] >> (source % 64) & 1) != 0) continue;
      return Error{ErrorCode::invalid_argument,
                   fmt::format("plan {}: {} and {} both access {}, at least one writes, and nothing orders them",
                               graph_.plan().name, graph_.describe(question.earlier), graph_.describe(question.later),
                               describe(question.location, graph_.plan().parts_per_block))};
    }

    // A source counts from its own node on: its mask gets its bit after its own questions were answered.
    reached_by_[node] = before_move;
    while (next_source < batch.size() && batch[next_source].earlier == node) {
      const std::uint16_t source = source_index_[node];
      reached_by_[node][source / 64] |= std::uint64_t{1} << (source % 64);
      ++next_source;
    }
  }
  return {};
}

}  // namespace

LocationNumbers::LocationNumbers(const Plan& plan) {
  const std::uint32_t ranks = plan.contract.ranks.value();
  first_.reserve(std::size_t{ranks} * 3);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch}) {
      first_.push_back(count_);
      count_ += static_cast<std::uint32_t>(num_chunks(plan, Rank{rank}, buffer));
    }
  }
}

Status check_races(const Graph& graph, const LocationNumbers& numbers) { return RaceFinder{graph, numbers}.answer(); }

}  // namespace weft::collectives::plan
