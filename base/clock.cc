#include "base/clock.h"

namespace weft {
namespace {

class SteadyClock final : public Clock {
 public:
  [[nodiscard]] Nanos now() const noexcept override {
    return std::chrono::duration_cast<Nanos>(std::chrono::steady_clock::now().time_since_epoch());
  }
};

}  // namespace

const Clock& steady_clock() noexcept {
  static const SteadyClock kClock;
  return kClock;
}

}  // namespace weft
