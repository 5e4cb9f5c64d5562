#include "base/cores.h"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <thread>

namespace weft {

CoreSet CoreSet::of_this_thread() {
  CoreSet cores;
  // The kernel refuses a mask that is shorter than its own; 2^18 cores are more than it can be built for.
  for (std::uint32_t room = 1024; room <= 1U << 18; room *= 4) {
    cpu_set_t* mask = CPU_ALLOC(room);
    const std::size_t size_bytes = CPU_ALLOC_SIZE(room);
    const bool found = mask != nullptr && sched_getaffinity(0, size_bytes, mask) == 0;
    for (std::uint32_t core = 0; found && core < room; ++core) {
      if (CPU_ISSET_S(core, size_bytes, mask)) cores.add(core);
    }
    CPU_FREE(mask);
    if (found) return cores;
  }
  // Forbidden by a sandbox: what the language's library says is the best that is known.
  for (std::uint32_t core = 0; core < std::max(1U, std::thread::hardware_concurrency()); ++core) cores.add(core);
  return cores;
}

void CoreSet::add(std::uint32_t core) {
  const std::size_t word = core / 64;
  if (word >= words_.size()) words_.resize(word + 1);
  words_[word] |= std::uint64_t{1} << (core % 64);
}

bool CoreSet::contains(std::uint32_t core) const noexcept {
  const std::size_t word = core / 64;
  return word < words_.size() && (words_[word] >> (core % 64) & 1) != 0;
}

std::uint32_t CoreSet::num_cores() const noexcept {
  int count = 0;
  for (const std::uint64_t word : words_) count += std::popcount(word);
  return static_cast<std::uint32_t>(count);
}

void CoreSet::merge(const CoreSet& other) {
  words_.resize(std::max(words_.size(), other.words_.size()));
  for (std::size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
}

CoreSet CoreSet::from_words(std::span<const std::uint64_t> words) {
  CoreSet cores;
  cores.words_.assign(words.begin(), words.end());
  while (!cores.words_.empty() && cores.words_.back() == 0) cores.words_.pop_back();
  return cores;
}

Cores judge_cores(std::span<const CoreSet> of_ranks) {
  CoreSet together;
  for (const CoreSet& own : of_ranks) {
    together.merge(own);
    if (std::count(of_ranks.begin(), of_ranks.end(), own) > std::int64_t{own.num_cores()}) return Cores::crowded;
  }
  return of_ranks.size() > together.num_cores() ? Cores::crowded : Cores::enough;
}

}  // namespace weft
