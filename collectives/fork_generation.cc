#include "collectives/fork_generation.h"

#include <pthread.h>

#include "base/check.h"

namespace weft::collectives {

constinit std::atomic<std::uint32_t> fork_generation{0};

namespace {

[[maybe_unused]] const bool kIsWatched = [] {
  const int err = pthread_atfork(nullptr, nullptr, [] { fork_generation.fetch_add(1, std::memory_order_relaxed); });
  WEFT_CHECK(err == 0, "there is memory for one handler of forks when the library is loaded");
  return true;
}();

}  // namespace
}  // namespace weft::collectives
