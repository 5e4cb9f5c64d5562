#include "tests/fakes/plan_oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/random.h"
#include "collectives/plan/buffers.h"

namespace weft::fakes {
namespace {

using namespace collectives;
using namespace collectives::plan;

Error wrong(const std::string& what) { return Error{ErrorCode::invalid_argument, what}; }

/// A chunk's content. Sums are exact in integers modulo 2^64; `order` is a reduction that is commutative but not
/// associative, as floating-point addition is, so it tells the order in which ranks were joined.
struct Number {
  std::uint64_t sum = 0;
  std::uint64_t order = 0;
  friend bool operator==(const Number&, const Number&) = default;
};
std::uint64_t mix(std::uint64_t value) { return Random{value}.next(); }
Number join(Number a, Number b) { return {a.sum + b.sum, mix(mix(a.order) + mix(b.order))}; }

/// Where a step is between its start and its completion.
struct Progress {
  bool has_started = false;
  bool has_read = false;   ///< The source, or the operand of a receive_reduce.
  bool has_begun = false;  ///< The destination holds garbage.
  bool has_written = false;
  bool is_done = false;
  Number read;
  Number second;
};

class Executor {
 public:
  Executor(const Plan& plan, Movement movement, std::uint64_t seed) : plan_(plan), movement_(movement), random_(seed) {}

  Status run() {
    WEFT_TRY(lay_out());
    while (num_left_ > 0) {
      // Every legal event is equally likely; enabled ones are found by trying from a random place on.
      const std::size_t offset = random_.below(flat_.size());
      bool moved = false;
      for (std::size_t i = 0; i < flat_.size() && !moved; ++i) moved = advance((offset + i) % flat_.size());
      if (!moved) return wrong("the plan is stuck");
    }
    return check();
  }

 private:
  struct Flat {
    Rank rank;
    const Step* step;
    std::size_t other = 0;  ///< The other end.
  };

  Status lay_out();
  Status check_place(const Flat& flat, const Location& location) const;
  Status pair_up();
  bool advance(std::size_t index);
  Status check();
  [[nodiscard]] Number expected(Rank rank, std::uint32_t chunk) const;
  Number& at(const Location& location) {
    return memory_[location.rank.index()][std::size_t(location.buffer)][location.chunk];
  }
  Number garbage() { return {random_.next(), random_.next()}; }

  const Plan& plan_;
  Movement movement_;
  Random random_;
  std::vector<Flat> flat_;
  std::vector<std::size_t> first_;
  std::vector<Progress> progress_;
  std::size_t num_left_ = 0;
  std::vector<std::vector<std::vector<Number>>> memory_;  ///< Per rank, buffer, chunk.
  std::vector<std::vector<Number>> inputs_;               ///< Per rank, as given.
};

Status Executor::lay_out() {
  const std::uint32_t ranks = plan_.contract.ranks.value();
  if (plan_.steps.size() != ranks || plan_.scratch_chunks.size() != ranks) return wrong("ranks are missing");
  for (std::uint32_t number = 0; number < ranks; ++number) {
    const Rank rank{number};
    auto& buffers = memory_.emplace_back();
    for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch}) {
      auto& chunks = buffers.emplace_back(num_chunks(plan_, rank, buffer));
      for (Number& chunk : chunks) chunk = garbage();
    }
    auto& inputs = inputs_.emplace_back(plan_.contract.input_blocks(rank) * plan_.parts_per_block);
    for (std::uint32_t chunk = 0; chunk < inputs.size(); ++chunk) {
      inputs[chunk] = garbage();
      at(canonical(plan_.contract, plan_.parts_per_block, {rank, Buffer::input, chunk})) = inputs[chunk];
    }
    first_.push_back(flat_.size());
    for (const Step& step : plan_.steps[number]) flat_.push_back({rank, &step});
  }
  progress_.resize(flat_.size());
  num_left_ = flat_.size();
  return pair_up();
}

Status Executor::check_place(const Flat& flat, const Location& location) const {
  if (location.rank != flat.rank || location.chunk >= memory_[flat.rank.index()][std::size_t(location.buffer)].size()) {
    return wrong("a location is outside its buffer");
  }
  const std::uint32_t reference = writes(flat.step->kind) ? flat.step->destination.chunk : flat.step->source.chunk;
  if (location.chunk % plan_.parts_per_block != reference % plan_.parts_per_block) return wrong("sizes differ");
  return {};
}

Status Executor::pair_up() {
  std::map<std::uint32_t, std::vector<std::size_t>> ends;
  for (std::size_t i = 0; i < flat_.size(); ++i) {
    const Step& step = *flat_[i].step;
    for (const std::uint32_t before : step.after) {
      if (before >= plan_.steps[flat_[i].rank.index()].size()) return wrong("an edge comes from nowhere");
    }
    const Reads reads = reads_of(step);
    for (const Location& read : reads.all()) WEFT_TRY(check_place(flat_[i], read));
    if (writes(step.kind)) {
      WEFT_TRY(check_place(flat_[i], step.destination));
      if (!is_writable(plan_.contract, plan_.parts_per_block, step.destination)) return wrong("it writes to an input");
    }
    if (is_transfer(step.kind)) ends[step.transfer].push_back(i);
  }
  if (ends.size() != plan_.num_transfers) return wrong("the number of transfers is wrong");
  for (const auto& [transfer, both] : ends) {
    if (both.size() != 2) return wrong(fmt::format("transfer {} has not two ends", transfer));
    Flat& a = flat_[both[0]];
    Flat& b = flat_[both[1]];
    if ((a.step->kind == StepKind::send) == (b.step->kind == StepKind::send)) return wrong("two ends of one kind");
    if (a.step->peer != b.rank || b.step->peer != a.rank || a.rank == b.rank) return wrong("peers do not match");
    const Step& send = a.step->kind == StepKind::send ? *a.step : *b.step;
    const Step& receive = a.step->kind == StepKind::send ? *b.step : *a.step;
    if (send.source.chunk % plan_.parts_per_block != receive.destination.chunk % plan_.parts_per_block) {
      return wrong("sizes of the ends differ");
    }
    a.other = both[1];
    b.other = both[0];
  }
  return {};
}

/// Does the next event of the step if it is legal now. No event makes another illegal, so a plan that gets stuck in one
/// schedule gets stuck in all of this movement.
bool Executor::advance(std::size_t index) {
  const auto& [rank, step_pointer, other_index] = flat_[index];
  const Step& step = *step_pointer;
  Progress& own = progress_[index];
  if (own.is_done) return false;
  if (!own.has_started) {
    for (const std::uint32_t before : step.after) {
      if (!progress_[first_[rank.index()] + before].is_done) return false;
    }
    return own.has_started = true;
  }
  Progress& other = progress_[other_index];
  const auto finish = [&] {
    --num_left_;
    return own.is_done = true;
  };
  if (step.kind == StepKind::send) {
    if (!own.has_read) {
      if (movement_ != Movement::eager && !other.has_started) return false;
      own.read = at(step.source);
      return own.has_read = true;
    }
    if (movement_ == Movement::pull && !other.has_written) return false;
    return finish();
  }
  if (step.kind != StepKind::receive && !own.has_read) {
    own.read = at(step.source);
    if (step.kind == StepKind::reduce) own.second = at(step.second);
    return own.has_read = true;
  }
  const bool is_receive = is_transfer(step.kind);
  if (!own.has_begun) {
    if (is_receive && !other.has_started) return false;
    at(step.destination) = garbage();
    return own.has_begun = true;
  }
  if (!own.has_written) {
    if (is_receive && !other.has_read) return false;
    switch (step.kind) {
      case StepKind::receive: at(step.destination) = other.read; break;
      case StepKind::receive_reduce: at(step.destination) = join(own.read, other.read); break;
      case StepKind::reduce: at(step.destination) = join(own.read, own.second); break;
      default: at(step.destination) = own.read; break;
    }
    return own.has_written = true;
  }
  return finish();
}

Number Executor::expected(Rank rank, std::uint32_t chunk) const {
  const Contract& contract = plan_.contract;
  const std::uint32_t parts = plan_.parts_per_block;
  const std::uint32_t mine = rank.value() * parts + chunk % parts;
  switch (contract.collective) {
    case Collective::all_gather:
    case Collective::gather: return inputs_[chunk / parts][chunk % parts];
    case Collective::all_to_all: return inputs_[chunk / parts][mine];
    case Collective::broadcast: return inputs_[contract.root.index()][chunk];
    case Collective::scatter: return inputs_[contract.root.index()][mine];
    default: break;
  }
  Number total;
  for (const auto& inputs : inputs_) {
    total.sum += inputs[contract.collective == Collective::reduce_scatter ? mine : chunk].sum;
  }
  return total;
}

Status Executor::check() {
  const Contract& contract = plan_.contract;
  const std::uint32_t parts = plan_.parts_per_block;
  for (std::uint32_t number = 0; number < contract.ranks.value(); ++number) {
    const Rank rank{number};
    for (std::uint32_t chunk = 0; chunk < contract.output_blocks(rank) * parts; ++chunk) {
      const Number found = at(canonical(contract, parts, {rank, Buffer::output, chunk}));
      if (found.sum != expected(rank, chunk).sum) return wrong(fmt::format("rank {} chunk {} is wrong", number, chunk));
      if (!reduces(contract.collective) && found.order != expected(rank, chunk).order) return wrong("not a plain copy");
      if ((contract.collective == Collective::all_reduce || contract.collective == Collective::barrier) &&
          found != at(canonical(contract, parts, {Rank{0}, Buffer::output, chunk}))) {
        return wrong(fmt::format("rank {} chunk {} was joined in another order than rank 0's", number, chunk));
      }
    }
  }
  return {};
}

}  // namespace

Status run_schedule(const Plan& plan, Movement movement, std::uint64_t seed) {
  return Executor{plan, movement, seed}.run();
}

Status run_schedules(const Plan& plan, std::uint32_t num_schedules, std::uint64_t seed) {
  for (std::uint32_t i = 0; i < num_schedules; ++i) {
    for (const Movement movement : {Movement::eager, Movement::push, Movement::pull}) {
      WEFT_TRY(run_schedule(plan, movement, mix(seed + i)));
    }
  }
  return {};
}

bool is_right(const Plan& plan, std::uint64_t seed) {
  return run_schedules(plan, 1, seed).has_value() && find_race(plan).has_value();
}

}  // namespace weft::fakes
