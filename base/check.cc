#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace weft {

void broken_promise(const char* condition, const char* promise, const char* file, int line) noexcept {
  std::fprintf(stderr, "weft: bug: %s (%s is false) at %s:%d\n", promise, condition, file, line);
  std::abort();
}

}  // namespace weft
