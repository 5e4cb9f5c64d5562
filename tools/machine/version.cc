#include "tools/machine/version.h"

#include <weft/weft.h>

#include <fmt/format.h>

#ifndef WEFT_COMMIT  // Set by the build where it can be known.
#define WEFT_COMMIT "unknown"
#endif

namespace weft::tools {

std::string commit_text() { return WEFT_COMMIT; }

std::string version_text() {
  return fmt::format("weft {}.{}.{} ({})", WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR, WEFT_VERSION_PATCH, commit_text());
}

}  // namespace weft::tools
