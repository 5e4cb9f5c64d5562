#pragma once

#include <new>
#include <utility>

#include "base/error.h"

namespace weft {

/// The error for an allocation that failed; takes no memory itself. Thread: any.
[[nodiscard]] Error out_of_memory() noexcept;

/// Runs `body`, which returns a Result, for a function that throws nothing: where memory ends, so does the call, in
/// limit_exceeded. What `body` did until then is its own affair.
template <class Body>
[[nodiscard]] auto or_out_of_memory(Body&& body) noexcept -> decltype(body()) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

}  // namespace weft
