#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "collectives/plan/plan.h"

namespace weft::collectives::plan {

/// What a chunk can hold, as expressions: nothing, one rank's input chunk, or two expressions joined by the reduction.
/// Equal expressions have equal numbers; the two sides of a join have no order (the reduction is commutative, not
/// associative), so equal numbers mean equal bits.
class Values {
 public:
  using Value = std::uint32_t;
  static constexpr Value kUndefined = 0;

  explicit Values(const Contract& contract, std::uint32_t parts_per_block);

  /// Chunk `chunk` of the input of `rank`, as the caller gave it.
  [[nodiscard]] Value input(Rank rank, std::uint32_t chunk) const noexcept {
    return first_input_[rank.index()] + chunk;
  }
  /// Errors: invalid_argument — the two are of different chunks, or share a rank's contribution.
  Result<Value> join(Value left, Value right);
  /// True if `value` joins the input chunk `chunk` of every rank, each once.
  [[nodiscard]] bool is_complete(Value value, std::uint32_t chunk) const noexcept;
  /// A number that is equal for two values that join ranks in the same way, whatever the chunk.
  [[nodiscard]] std::uint64_t shape_of(Value value) const noexcept;
  /// For people: "the input block 0 part 1 of rank 2", "the reduction of block 0 part 1 over ranks 0-3, 7".
  [[nodiscard]] std::string describe(Value value) const;

 private:
  struct Join {
    std::uint32_t chunk;
    std::uint32_t num_ranks;
    std::uint64_t shape;
  };
  [[nodiscard]] bool is_join(Value value) const noexcept { return value >= first_join_; }
  [[nodiscard]] Rank rank_of_input(Value value) const noexcept;
  [[nodiscard]] std::uint32_t chunk_of(Value value) const noexcept;
  [[nodiscard]] std::span<const std::uint64_t> ranks_of(Value join) const noexcept {
    return {rank_words_.data() + (join - first_join_) * num_words_, num_words_};
  }
  [[nodiscard]] std::vector<std::uint32_t> list_ranks(Value value) const;

  std::uint32_t num_ranks_;
  std::uint32_t parts_per_block_;
  std::size_t num_words_;           ///< Of a set of ranks.
  std::vector<Value> first_input_;  ///< Per rank, and one past the last.
  Value first_join_;
  std::vector<Join> joins_;
  std::vector<std::uint64_t> rank_words_;           ///< Per join: its set of ranks.
  std::unordered_map<std::uint64_t, Value> known_;  ///< Both sides -> their join.
};

}  // namespace weft::collectives::plan
