#include "tools/run/placement.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include <fmt/format.h>

#include "base/text.h"

namespace weft::tools {
namespace {

/// Splits at every `separator`; no empty pieces.
std::vector<std::string_view> pieces(std::string_view text, char separator) {
  std::vector<std::string_view> found;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) found.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return found;
}

std::string_view name_of_entry(std::string_view entry) { return entry.substr(0, entry.find('=')); }

}  // namespace

Result<std::vector<TestHost>> parse_test_hosts(std::string_view text) {
  std::vector<TestHost> hosts;
  for (const std::string_view entry : pieces(text, ' ')) {
    const std::vector<std::string_view> fields = pieces(entry, '=');
    TestHost host;
    const bool has_three = fields.size() == 3;
    const char* const end = has_three ? fields[2].data() + fields[2].size() : nullptr;
    if (!has_three || std::from_chars(fields[2].data(), end, host.holder_pid).ptr != end || host.holder_pid == 0) {
      return Error{ErrorCode::malformed, "WEFT_TEST_HOSTS: " + in_quotes(entry) + " is not name=address=pid",
                   "scripts/test_hosts.sh sets it"};
    }
    host.name = fields[0];
    host.address = fields[1];
    hosts.push_back(std::move(host));
  }
  return hosts;
}

std::vector<Place> place_ranks(std::uint32_t ranks, std::uint32_t hosts) {
  std::vector<Place> places;
  places.reserve(ranks);
  for (std::uint32_t host = 0; host < hosts; ++host) {
    const std::uint32_t local_size = ranks / hosts + (host < ranks % hosts ? 1 : 0);
    for (std::uint32_t local = 0; local < local_size; ++local) places.push_back({host, local, local_size});
  }
  return places;
}

Result<std::string> find_program(std::string_view command, std::string_view path) {
  std::vector<std::string> candidates;
  if (command.find('/') != std::string_view::npos) {
    candidates.emplace_back(command);
  } else if (!command.empty()) {
    for (const std::string_view folder : pieces(path, ':')) candidates.push_back(fmt::format("{}/{}", folder, command));
  }
  int reason = ENOENT;
  for (const std::string& candidate : candidates) {
    struct stat status {};
    if (stat(candidate.c_str(), &status) != 0) continue;
    if (S_ISDIR(status.st_mode)) {
      reason = EISDIR;
    } else if (access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    } else {
      reason = errno;
    }
  }
  const std::string doing = "cannot run " + in_quotes(command, 256);
  if (reason == ENOENT) return Error{ErrorCode::not_found, doing + ": command not found"};
  return Error::from_errno(ErrorCode::system, doing, reason);
}

std::vector<std::string> merged_environment(char** environment, const std::vector<std::string>& entries,
                                            const std::vector<std::string>& removed_names) {
  std::vector<std::string> merged;
  for (char** entry = environment; *entry != nullptr; ++entry) {
    const std::string_view name = name_of_entry(*entry);
    const bool is_replaced =
        std::any_of(entries.begin(), entries.end(), [&](const std::string& e) { return name_of_entry(e) == name; });
    const bool is_removed = std::find(removed_names.begin(), removed_names.end(), name) != removed_names.end();
    if (!is_replaced && !is_removed) merged.emplace_back(*entry);
  }
  merged.insert(merged.end(), entries.begin(), entries.end());
  return merged;
}

}  // namespace weft::tools
