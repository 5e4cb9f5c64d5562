#pragma once

#include <cstdint>
#include <string>

namespace weft::bootstrap {

/// Who listens on a TCP port of this machine: "nc (pid 4711)", or "" when that is not visible (another user's process,
/// another container) or not found in a third of a second, since an error must not wait for a machine full of
/// processes. Reads net/tcp, net/tcp6 and the descriptors of processes under `proc_root`, this process first. Thread:
/// any.
std::string find_port_owner(std::uint16_t port, const std::string& proc_root = "/proc");

}  // namespace weft::bootstrap
