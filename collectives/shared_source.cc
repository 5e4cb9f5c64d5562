#include "collectives/shared_source.h"

#include "transport/shm/shared_memory.h"

namespace weft::collectives {
namespace {

class SharedSource final : public engine::MemorySource {
 public:
  Result<std::byte*> allocate(std::size_t size_bytes) override {
    return transport::shm::allocate_shared_memory(size_bytes);
  }
  void release(std::byte* memory) override { (void)transport::shm::release_shared_memory(memory); }
  [[nodiscard]] device::MemoryKind kind_of(const std::byte* memory, std::size_t size_bytes) const noexcept override {
    return transport::shm::find_shared_memory(memory, size_bytes) ? device::MemoryKind::shared
                                                                  : device::MemoryKind::host;
  }
};

}  // namespace

engine::MemorySource& shared_source() noexcept {
  static SharedSource source;
  return source;
}

}  // namespace weft::collectives
