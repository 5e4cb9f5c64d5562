#pragma once

#include <cstdint>

namespace weft::test {

/// While it lives, operator new of this thread fails after `num_good` more successes.
class FailingAllocations {
 public:
  explicit FailingAllocations(std::uint32_t num_good) noexcept;
  ~FailingAllocations();
  FailingAllocations(const FailingAllocations&) = delete;
  FailingAllocations& operator=(const FailingAllocations&) = delete;
};

}  // namespace weft::test
