#include "device/memory.h"

namespace weft::device {

std::string_view name_of(MemoryKind kind) noexcept {
  switch (kind) {
    case MemoryKind::host: return "host";
    case MemoryKind::shared: return "shared";
    case MemoryKind::device: return "device";
  }
  return "unknown";
}

}  // namespace weft::device
