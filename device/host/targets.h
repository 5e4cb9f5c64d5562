#pragma once

#include <string>
#include <vector>

namespace weft::device::host {

/// The instruction sets that this build has and this processor runs, best first. Thread: any.
std::vector<std::string> kernel_targets();

/// Uses the named one of kernel_targets() from now on, for tests and benches; "" goes back to the best.
/// False if there is no such target. Thread: no kernel and no reduce_function may run meanwhile.
bool use_kernel_target(const std::string& name);

}  // namespace weft::device::host
