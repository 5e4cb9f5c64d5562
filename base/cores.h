#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/spin.h"

namespace weft {

/// The processor cores (hardware threads) that a process may run on.
class CoreSet {
 public:
  CoreSet() = default;
  /// Those of the calling thread, as pinning, cpusets and containers left them. Thread: any.
  static CoreSet of_this_thread();

  void add(std::uint32_t core);
  [[nodiscard]] bool contains(std::uint32_t core) const noexcept;
  [[nodiscard]] std::uint32_t num_cores() const noexcept;
  /// Adds all of `other`.
  void merge(const CoreSet& other);
  /// 64 cores a word, the lowest bit first; no zero word at the end. For the wire.
  [[nodiscard]] std::span<const std::uint64_t> words() const noexcept { return words_; }
  static CoreSet from_words(std::span<const std::uint64_t> words);

  friend bool operator==(const CoreSet&, const CoreSet&) = default;

 private:
  std::vector<std::uint64_t> words_;
};

/// Whether the ranks of one host, which may run on the given cores each, all find a core at the same time: crowded
/// if there are more ranks than cores together, or more ranks with the very same cores than those are. So ranks that
/// are pinned to one core each have enough, and two that are pinned to the same one have not. Thread: any.
Cores judge_cores(std::span<const CoreSet> of_ranks);

}  // namespace weft
