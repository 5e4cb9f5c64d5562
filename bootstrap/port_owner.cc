#include "bootstrap/port_owner.h"

#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>
#include <unordered_set>

#include <fmt/format.h>

#include "base/clock.h"

namespace weft::bootstrap {
namespace {

namespace fs = std::filesystem;

constexpr Nanos kSearchTimeout = std::chrono::milliseconds(300);

/// One line of /proc/net/tcp: "sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode ...".
std::optional<std::string> inode_if_listening(const std::string& line, std::uint16_t port) {
  constexpr std::string_view kListening = "0A";
  std::istringstream fields(line);
  std::string slot;
  std::string local;
  std::string remote;
  std::string state;
  std::string skipped;
  std::string inode;
  fields >> slot >> local >> remote >> state;
  for (int i = 0; i < 5; ++i) fields >> skipped;
  fields >> inode;
  if (!fields || state != kListening) return std::nullopt;
  const auto colon = local.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  unsigned int found = 0;
  std::from_chars(local.data() + colon + 1, local.data() + local.size(), found, 16);
  return found == port ? std::optional(inode) : std::nullopt;
}

std::unordered_set<std::string> listening_sockets(std::uint16_t port, const std::string& proc_root) {
  std::unordered_set<std::string> links;
  for (const char* table : {"/net/tcp", "/net/tcp6"}) {
    std::ifstream file(proc_root + table);
    for (std::string line; std::getline(file, line);) {
      if (const auto inode = inode_if_listening(line, port)) links.insert(fmt::format("socket:[{}]", *inode));
    }
  }
  return links;
}

std::string describe_process(const fs::path& process, const std::string& pid) {
  std::string name = "a process";
  std::ifstream file(process / "comm");
  std::getline(file, name);
  return fmt::format("{} (pid {})", name, pid);
}

bool holds_one_of(const fs::path& process, const std::unordered_set<std::string>& links) {
  std::error_code failure;  // Processes end while we look, and others' descriptors are not ours to see.
  for (fs::directory_iterator entry(process / "fd", failure), end; !failure && entry != end; entry.increment(failure)) {
    std::error_code unreadable;
    if (links.contains(fs::read_symlink(entry->path(), unreadable).string())) return true;
  }
  return false;
}

}  // namespace

std::string find_port_owner(std::uint16_t port, const std::string& proc_root) {
  const auto links = listening_sockets(port, proc_root);
  if (links.empty()) return {};
  const Deadline deadline = Deadline::after(kSearchTimeout);
  const fs::path root(proc_root);
  if (holds_one_of(root / "self", links)) return describe_process(root / "self", std::to_string(getpid()));
  std::error_code failure;
  for (fs::directory_iterator entry(root, failure), end; !failure && entry != end; entry.increment(failure)) {
    if (deadline.has_passed()) break;
    const std::string pid = entry->path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    if (holds_one_of(entry->path(), links)) return describe_process(entry->path(), pid);
  }
  return {};
}

}  // namespace weft::bootstrap
