#include "device/host/cache_size.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>

namespace weft::device::host {
namespace {

/// "32768K", "1M"; 0 if it is not such a text.
std::size_t parse_size(const std::string& text) {
  std::size_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [unit, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc{} || number > (std::size_t{1} << 40)) return 0;
  if (unit == end) return number;
  if (*unit == 'K') return number << 10;
  if (*unit == 'M') return number << 20;
  return 0;
}

std::string first_word(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

std::size_t from_sysconf(int name) {
  const long value = sysconf(name);
  return value > 0 ? static_cast<std::size_t>(value) : 0;
}

}  // namespace

CacheSizes cache_sizes(const std::string& sysfs_root) noexcept {
  CacheSizes sizes;
  for (int index = 0; index < 8; ++index) {
    const std::string folder = sysfs_root + "/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    const std::string level = first_word(folder + "level");
    if (level.empty()) break;
    if (first_word(folder + "type") == "Instruction") continue;
    const std::size_t size = parse_size(first_word(folder + "size"));
    if (level == "2") sizes.second_level = size;
    if (level == "3") sizes.last_level = std::max(sizes.last_level, size);
  }
  if (sizes.second_level == 0) sizes.second_level = from_sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (sizes.last_level == 0) sizes.last_level = from_sysconf(_SC_LEVEL3_CACHE_SIZE);
  return sizes;
}

StreamingThresholds streaming_thresholds(CacheSizes sizes) noexcept {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  const std::size_t cache = std::clamp(sizes.last_level, 4 * kMiB, 64 * kMiB);
  return {.reduce_bytes = cache / 4, .copy_bytes = cache / 4};
}

}  // namespace weft::device::host
