#pragma once

namespace weft {

/// Prints which promise was broken and where, then aborts. Thread: any.
[[noreturn]] void broken_promise(const char* condition, const char* promise, const char* file, int line) noexcept;

}  // namespace weft

/// A bug, not an event of the world: `condition` is a promise between parts of Weft.
#define WEFT_CHECK(condition, promise)                                 \
  do {                                                                 \
    if (!(condition)) [[unlikely]] {                                   \
      ::weft::broken_promise(#condition, promise, __FILE__, __LINE__); \
    }                                                                  \
  } while (false)

#ifdef NDEBUG
#define WEFT_DCHECK(condition, promise) \
  do {                                  \
  } while (false && (condition))
#else
#define WEFT_DCHECK(condition, promise) WEFT_CHECK(condition, promise)
#endif
