#pragma once

#include <string>

namespace weft::tools {

/// The commit that this was built from ("v0.1-12-gabc1234"), or "unknown". Thread: any.
std::string commit_text();
/// "weft 0.1.0 (commit)". Thread: any.
std::string version_text();

}  // namespace weft::tools
