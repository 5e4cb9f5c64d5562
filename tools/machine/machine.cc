#include "tools/machine/machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>

#include <fmt/format.h>

#include "base/cores.h"
#include "base/text.h"
#include "base/units.h"
#include "device/host/kernels.h"

namespace weft::tools {
namespace {

/// The value of the first line "name : value" of a file in /proc.
std::string value_in(const char* path, std::string_view name) {
  std::ifstream file{path};
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon != std::string::npos && trimmed(std::string_view{line}.substr(0, colon)) == name) {
      return std::string{trimmed(std::string_view{line}.substr(colon + 1))};
    }
  }
  return "";
}

/// "32K L1d, 1M L2, 32M L3" of the first core.
std::string caches() {
  std::string text;
  for (int index = 0; index < 8; ++index) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    const std::string size = first_line(folder + "size");
    const std::string type = first_line(folder + "type");
    if (size.empty() || type == "Instruction") continue;
    text += fmt::format("{}{} L{}{}", text.empty() ? "" : ", ", size, first_line(folder + "level"),
                        type == "Data" ? "d" : "");
  }
  return text.empty() ? "unknown" : text;
}

std::string memory_text(const std::string& kib_text) {
  const std::size_t blank = kib_text.find(' ');
  if (blank == std::string::npos) return "unknown";
  return fmt::format("{:.1f} GiB", std::stod(kib_text.substr(0, blank)) / (1024 * 1024));
}

}  // namespace

std::string first_line(const std::string& path) {
  std::ifstream file{path};
  std::string line;
  std::getline(file, line);
  return std::string{trimmed(line)};
}

std::vector<Fact> machine_facts() {
  utsname names{};
  uname(&names);
  const std::string model = value_in("/proc/cpuinfo", "model name");
  return {
      {"host", names.nodename},
      {"processor", model.empty() ? names.machine : model},
      {"cores", fmt::format("{} usable of {}", CoreSet::of_this_thread().num_cores(), sysconf(_SC_NPROCESSORS_ONLN))},
      {"caches", caches()},
      {"memory", fmt::format("{}, {} available", memory_text(value_in("/proc/meminfo", "MemTotal")),
                             memory_text(value_in("/proc/meminfo", "MemAvailable")))},
      {"kernel", fmt::format("{} {}", names.sysname, names.release)},
      {"reduction kernels", device::kernel_target()},
  };
}

}  // namespace weft::tools
