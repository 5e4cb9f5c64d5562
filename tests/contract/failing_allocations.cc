// Replaces operator new in this executable by one that can be told to fail.
#include "tests/contract/failing_allocations.h"

#include <cstdlib>
#include <new>

namespace {
constexpr std::uint32_t kNever = 0xffffffff;
thread_local std::uint32_t good_left = kNever;
}  // namespace

weft::test::FailingAllocations::FailingAllocations(std::uint32_t num_good) noexcept { good_left = num_good; }
weft::test::FailingAllocations::~FailingAllocations() { good_left = kNever; }

void* operator new(std::size_t size) {
  if (good_left != kNever && good_left-- == 0) {
    good_left = 0;
    throw std::bad_alloc();
  }
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
