#include "collectives/plan/builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "collectives/plan/buffers.h"
#include "collectives/plan/describe.h"

namespace weft::collectives::plan {
namespace {

/// Removes the candidates that another candidate already waits for. `candidates` is sorted and unique.
void drop_implied(std::vector<std::uint32_t>& candidates, const std::vector<Step>& steps) {
  if (candidates.size() < 2) return;
  std::vector<bool> is_implied(candidates.size(), false);
  for (const std::uint32_t candidate : candidates) {
    for (const std::uint32_t before : steps[candidate].after) {
      const auto found = std::lower_bound(candidates.begin(), candidates.end(), before);
      if (found != candidates.end() && *found == before) is_implied[found - candidates.begin()] = true;
    }
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!is_implied[i]) candidates[kept++] = candidates[i];
  }
  candidates.resize(kept);
}

Step transfer_step(StepKind kind, Rank peer, std::uint32_t number, std::uint16_t lane) {
  Step step;
  step.kind = kind;
  step.peer = peer;
  step.transfer = number;
  step.lane = lane;
  return step;
}

}  // namespace

PlanBuilder::PlanBuilder(Contract contract, Options options) : options_(std::move(options)) {
  const std::uint32_t ranks = contract.ranks.value();
  WEFT_CHECK(ranks > 0, "a group has at least one rank");
  WEFT_CHECK(contract.root.value() < ranks, "the root is a rank of the group");
  WEFT_CHECK(options_.parts_per_block > 0 && options_.lanes > 0, "a block has at least one part, a plan one lane");
  WEFT_CHECK(!options_.focus || options_.focus->value() < ranks, "the focus is a rank of the group");
  plan_.name = options_.name;
  plan_.contract = contract;
  plan_.parts_per_block = options_.parts_per_block;
  plan_.lanes = options_.lanes;
  plan_.scratch_chunks.resize(ranks, 0);
  plan_.steps.resize(ranks);
  last_use_.resize(ranks);
  scratch_count_.resize(ranks);
}

Location PlanBuilder::input(Rank rank, std::uint32_t block, std::uint32_t part) const {
  WEFT_CHECK(rank.value() < plan_.contract.ranks.value() && block < plan_.contract.input_blocks(rank) &&
                 part < plan_.parts_per_block,
             "an input chunk lies inside the input of its rank");
  return resolve({rank, Buffer::input, block * plan_.parts_per_block + part});
}

Location PlanBuilder::output(Rank rank, std::uint32_t block, std::uint32_t part) const {
  WEFT_CHECK(rank.value() < plan_.contract.ranks.value() && block < plan_.contract.output_blocks(rank) &&
                 part < plan_.parts_per_block,
             "an output chunk lies inside the output of its rank");
  return resolve({rank, Buffer::output, block * plan_.parts_per_block + part});
}

Location PlanBuilder::new_scratch(Rank rank, std::uint32_t part) {
  WEFT_CHECK(rank.value() < plan_.contract.ranks.value() && part < plan_.parts_per_block,
             "a scratch chunk is of a rank and has the size of a part");
  std::uint32_t chunk = part;
  if (is_kept(rank)) {
    auto& count = scratch_count_[rank.index()];
    count.resize(plan_.parts_per_block, 0);
    // The number says the size (chunk % k), so each part counts on its own and chunks of different parts interleave.
    chunk += count[part]++ * plan_.parts_per_block;
  }
  auto& num_scratch = plan_.scratch_chunks[rank.index()];
  num_scratch = std::max(num_scratch, chunk + 1);
  return {rank, Buffer::scratch, chunk};
}

void PlanBuilder::transfer(Location from, Location to, Combine combine, std::optional<Location> operand,
                           std::uint16_t lane) {
  const std::uint32_t number = plan_.num_transfers++;
  if (!check("transfer", {from, to, operand.value_or(to)})) return;
  if (from.rank == to.rank || operand.value_or(to).rank != to.rank || lane >= plan_.lanes ||
      (operand && combine == Combine::overwrite)) {
    first_error_ =
        Error{ErrorCode::invalid_argument,
              fmt::format("plan {}: call {}: a transfer goes from one rank to another on one of {} lanes, and "
                          "only one that reduces has an operand, at the receiver; this one goes from rank {} "
                          "to rank {} on lane {}",
                          plan_.name, num_calls_, plan_.lanes, from.rank.value(), to.rank.value(), lane)};
    return;
  }
  if (is_kept(from.rank)) {
    Step send = transfer_step(StepKind::send, to.rank, number, lane);
    send.source = resolve(from);
    append(from.rank, std::move(send));
  }
  if (is_kept(to.rank)) {
    const StepKind kind = combine == Combine::reduce ? StepKind::receive_reduce : StepKind::receive;
    Step receive = transfer_step(kind, from.rank, number, lane);
    receive.destination = resolve(to);
    if (combine == Combine::reduce) receive.source = resolve(operand.value_or(to));
    append(to.rank, std::move(receive));
  }
}

void PlanBuilder::copy(Location from, Location to) {
  if (!check("copy", {from, to})) return;
  if (from.rank != to.rank) {
    first_error_ = Error{ErrorCode::invalid_argument,
                         fmt::format("plan {}: call {}: a copy stays on one rank", plan_.name, num_calls_)};
    return;
  }
  if (!is_kept(to.rank) || resolve(from) == resolve(to)) return;
  Step step;
  step.kind = StepKind::copy;
  step.source = resolve(from);
  step.destination = resolve(to);
  append(to.rank, std::move(step));
}

void PlanBuilder::reduce(Location left, Location right, Location to) {
  if (!check("reduce", {left, right, to})) return;
  if (left.rank != to.rank || right.rank != to.rank) {
    first_error_ = Error{ErrorCode::invalid_argument,
                         fmt::format("plan {}: call {}: a reduce stays on one rank", plan_.name, num_calls_)};
    return;
  }
  if (!is_kept(to.rank)) return;
  Step step;
  step.kind = StepKind::reduce;
  step.source = resolve(left);
  step.second = resolve(right);
  step.destination = resolve(to);
  append(to.rank, std::move(step));
}

Result<Plan> PlanBuilder::finish() && {
  if (first_error_) return *first_error_;
  return std::move(plan_);
}

void PlanBuilder::append(Rank rank, Step step) {
  std::vector<Step>& steps = plan_.steps[rank.index()];
  const auto position = static_cast<std::uint32_t>(steps.size());
  const Reads reads = reads_of(step);

  std::vector<std::uint32_t>& after = step.after;
  for (const Location& read : reads.all()) {  // Read after write.
    const LastUse& use = last_use(read);
    if (use.writer >= 0) after.push_back(static_cast<std::uint32_t>(use.writer));
  }
  if (writes(step.kind)) {
    const LastUse& use = last_use(step.destination);
    after.insert(after.end(), use.readers.begin(), use.readers.end());  // Write after read.
    // Write after write; if somebody has read since, then that reader waits for the writer.
    if (use.readers.empty() && use.writer >= 0) after.push_back(static_cast<std::uint32_t>(use.writer));
  }
  std::sort(after.begin(), after.end());
  after.erase(std::unique(after.begin(), after.end()), after.end());
  drop_implied(after, steps);

  for (const Location& read : reads.all()) {
    auto& readers = last_use(read).readers;
    if (readers.empty() || readers.back() != position) readers.push_back(position);
  }
  if (writes(step.kind)) {
    LastUse& use = last_use(step.destination);
    use.writer = position;
    use.readers.clear();
  }
  steps.push_back(std::move(step));
}

bool PlanBuilder::check(std::string_view call, std::initializer_list<Location> locations) {
  ++num_calls_;
  if (first_error_) return false;
  const std::uint32_t parts = plan_.parts_per_block;
  for (const Location& location : locations) {
    const bool is_rank = location.rank.value() < plan_.contract.ranks.value();
    // Both names of shared memory are accepted here: resolve() makes them one.
    std::uint64_t chunks = 0;
    if (is_rank) {
      switch (location.buffer) {
        case Buffer::input: chunks = std::uint64_t{plan_.contract.input_blocks(location.rank)} * parts; break;
        case Buffer::output: chunks = std::uint64_t{plan_.contract.output_blocks(location.rank)} * parts; break;
        case Buffer::scratch: chunks = plan_.scratch_chunks[location.rank.index()]; break;
      }
    }
    if (location.chunk >= chunks) {
      first_error_ =
          Error{ErrorCode::invalid_argument, fmt::format("plan {}: call {} ({}): {} is outside its buffer", plan_.name,
                                                         num_calls_, call, describe(location, parts))};
      return false;
    }
    if (location.chunk % parts != locations.begin()->chunk % parts) {
      first_error_ = Error{
          ErrorCode::invalid_argument,
          fmt::format("plan {}: call {} ({}): {} and {} are different parts and so of different sizes", plan_.name,
                      num_calls_, call, describe(*locations.begin(), parts), describe(location, parts))};
      return false;
    }
  }
  return true;
}

Location PlanBuilder::resolve(Location location) const {
  return canonical(plan_.contract, plan_.parts_per_block, location);
}

PlanBuilder::LastUse& PlanBuilder::last_use(const Location& location) {
  const std::uint32_t parts = plan_.parts_per_block;
  const std::size_t inputs = std::size_t{plan_.contract.input_blocks(location.rank)} * parts;
  const std::size_t outputs = std::size_t{plan_.contract.output_blocks(location.rank)} * parts;
  std::size_t index = location.chunk;
  if (location.buffer != Buffer::input) index += inputs;
  if (location.buffer == Buffer::scratch) index += outputs;
  auto& uses = last_use_[location.rank.index()];
  if (index >= uses.size()) uses.resize(std::max(index + 1, inputs + outputs));
  return uses[index];
}

}  // namespace weft::collectives::plan
