#pragma once

#include <tl/expected.hpp>

#include "base/error.h"

namespace weft {

/// A value, or why there is none. Nothing in Weft throws across a public function.
/// Source: std::expected (P0323), through libexpected-dev until the compilers of Debian have it.
template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using Base = tl::expected<T, Error>;
  using Base::Base;
  Result(Base base) : Base(std::move(base)) {}                     // NOLINT(google-explicit-constructor)
  Result(Error error) : Base(tl::unexpected(std::move(error))) {}  // NOLINT(google-explicit-constructor)
};

/// Success without a value.
using Status = Result<void>;

}  // namespace weft

#define WEFT_CONCAT_INNER(a, b) a##b
#define WEFT_CONCAT(a, b) WEFT_CONCAT_INNER(a, b)

/// Returns the error of `expression` from the calling function, if it has one.
#define WEFT_TRY(expression)                                \
  do {                                                      \
    if (auto weft_status = (expression); !weft_status) {    \
      return ::weft::Error(std::move(weft_status).error()); \
    }                                                       \
  } while (false)

/// Declares `declaration` from the value of `expression`, or returns its error.
#define WEFT_TRY_ASSIGN(declaration, expression)                                  \
  auto WEFT_CONCAT(weft_result_, __LINE__) = (expression);                        \
  if (!WEFT_CONCAT(weft_result_, __LINE__)) {                                     \
    return ::weft::Error(std::move(WEFT_CONCAT(weft_result_, __LINE__)).error()); \
  }                                                                               \
  declaration = std::move(*WEFT_CONCAT(weft_result_, __LINE__))
