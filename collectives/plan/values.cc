#include "collectives/plan/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace weft::collectives::plan {
namespace {

/// Source: the finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
std::uint64_t mix(std::uint64_t z) noexcept {
  z += 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

/// "0-3, 7".
std::string format_ranges(const std::vector<std::uint32_t>& sorted) {
  std::string text;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t last = i;
    while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += last == i ? fmt::format("{}", sorted[i]) : fmt::format("{}-{}", sorted[i], sorted[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace

Values::Values(const Contract& contract, std::uint32_t parts_per_block)
    : num_ranks_(contract.ranks.value()), parts_per_block_(parts_per_block), num_words_((num_ranks_ + 63) / 64) {
  Value next = kUndefined + 1;
  for (std::uint32_t rank = 0; rank < num_ranks_; ++rank) {
    first_input_.push_back(next);
    next += contract.input_blocks(Rank{rank}) * parts_per_block;
  }
  first_input_.push_back(next);
  first_join_ = next;
}

Result<Values::Value> Values::join(Value left, Value right) {
  if (left > right) std::swap(left, right);
  const auto [entry, is_new] =
      known_.try_emplace(std::uint64_t{left} << 32 | right, first_join_ + static_cast<Value>(joins_.size()));
  if (!is_new) return entry->second;
  const auto refuse = [&, entry = entry](const std::string& why) {
    known_.erase(entry);
    return Error{ErrorCode::invalid_argument,
                 fmt::format("it reduces {} with {}, {}", describe(left), describe(right), why)};
  };
  if (chunk_of(left) != chunk_of(right)) return refuse("which are different parts of the data");

  const std::size_t first_word = rank_words_.size();
  rank_words_.resize(first_word + num_words_, 0);
  std::uint64_t shared = 0;
  Join join{chunk_of(left), 0, 0};
  for (const Value side : {left, right}) {
    if (is_join(side)) {
      for (std::size_t word = 0; word < num_words_; ++word) {
        const std::uint64_t ranks = rank_words_[(side - first_join_) * num_words_ + word];
        shared |= rank_words_[first_word + word] & ranks;
        rank_words_[first_word + word] |= ranks;
      }
      join.num_ranks += joins_[side - first_join_].num_ranks;
    } else {
      const std::uint32_t rank = rank_of_input(side).value();
      const std::uint64_t bit = std::uint64_t{1} << (rank % 64);
      shared |= rank_words_[first_word + rank / 64] & bit;
      rank_words_[first_word + rank / 64] |= bit;
      join.num_ranks += 1;
    }
  }
  if (shared != 0) {
    rank_words_.resize(first_word);
    return refuse("so that a rank would count twice");
  }
  // The sum makes the two sides equal before the mixing.
  join.shape = mix(mix(shape_of(left)) + mix(shape_of(right)));
  joins_.push_back(join);
  return entry->second;
}

bool Values::is_complete(Value value, std::uint32_t chunk) const noexcept {
  if (value == kUndefined || chunk_of(value) != chunk) return false;
  return is_join(value) ? joins_[value - first_join_].num_ranks == num_ranks_ : num_ranks_ == 1;
}

std::uint64_t Values::shape_of(Value value) const noexcept {
  return is_join(value) ? joins_[value - first_join_].shape : rank_of_input(value).value();
}

Rank Values::rank_of_input(Value value) const noexcept {
  const auto after = std::upper_bound(first_input_.begin(), first_input_.end(), value);
  return Rank{static_cast<std::uint32_t>(after - first_input_.begin() - 1)};
}

std::uint32_t Values::chunk_of(Value value) const noexcept {
  return is_join(value) ? joins_[value - first_join_].chunk : value - first_input_[rank_of_input(value).index()];
}

std::vector<std::uint32_t> Values::list_ranks(Value value) const {
  std::vector<std::uint32_t> ranks;
  const auto words = ranks_of(value);
  for (std::uint32_t word = 0; word < words.size(); ++word) {
    for (std::uint64_t left = words[word]; left != 0; left &= left - 1) {
      ranks.push_back(word * 64 + static_cast<std::uint32_t>(std::countr_zero(left)));
    }
  }
  return ranks;
}

std::string Values::describe(Value value) const {
  if (value == kUndefined) return "undefined memory";
  const std::uint32_t chunk = chunk_of(value);
  const std::string place = fmt::format("block {} part {}", chunk / parts_per_block_, chunk % parts_per_block_);
  if (!is_join(value)) return fmt::format("the input {} of rank {}", place, rank_of_input(value).value());
  return fmt::format("the reduction of input {} over ranks {}", place, format_ranges(list_ranks(value)));
}

}  // namespace weft::collectives::plan
