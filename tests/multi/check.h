#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "weft/weft.h"

/// What the programs of these tests share: they are users of weft.h, in processes of their own.
namespace weft::multi {

[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "FAIL: %s (last error: %s)\n", what.c_str(), weft_last_error());
  std::_Exit(1);
}

inline void require(bool is_true, const std::string& what) {
  if (!is_true) fail(what);
}

inline void succeed(weft_status_t status, const std::string& what) {
  if (status != WEFT_SUCCESS) fail(what + ": " + weft_status_name(status));
}

}  // namespace weft::multi
