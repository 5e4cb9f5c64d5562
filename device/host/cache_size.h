#pragma once

#include <cstddef>
#include <string>

namespace weft::device::host {

/// Data cache sizes in bytes; 0 is unknown.
struct CacheSizes {
  std::size_t last_level = 0;
};

/// From sysfs, which knows what this processor shares; from sysconf where sysfs is silent (in some virtual machines
/// sysconf adds up the caches of the whole socket). `sysfs_root` is a seam for tests. Thread: any.
CacheSizes cache_sizes(const std::string& sysfs_root = "/sys") noexcept;

/// From which destination size on non-temporal stores win.
struct StreamingThresholds {
  std::size_t reduce_bytes = 0;
  std::size_t copy_bytes = 0;
};
StreamingThresholds streaming_thresholds(CacheSizes sizes) noexcept;

}  // namespace weft::device::host
