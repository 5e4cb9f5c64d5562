#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/host/copy.cc"
#include <hwy/foreach_target.h>  // Compiles this file once per instruction set; must come first.

#include "device/host/loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::device::host::HWY_NAMESPACE {

/// Non-temporal stores of whole cache lines, memcpy at both ends.
void stream_bytes(std::byte* destination, const std::byte* source, std::size_t size_bytes) noexcept {
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t lanes = hn::Lanes(d);
  auto* to = reinterpret_cast<std::uint8_t*>(destination);
  const auto* from = reinterpret_cast<const std::uint8_t*>(source);
  const std::size_t head = (kCacheLineBytes - reinterpret_cast<std::uintptr_t>(to) % kCacheLineBytes) % kCacheLineBytes;
  if (size_bytes > head) {
    std::memcpy(to, from, head);
    std::size_t i = head;
    for (; i + 4 * lanes <= size_bytes; i += 4 * lanes) {
      const auto v0 = hn::LoadU(d, from + i);
      const auto v1 = hn::LoadU(d, from + i + lanes);
      const auto v2 = hn::LoadU(d, from + i + 2 * lanes);
      const auto v3 = hn::LoadU(d, from + i + 3 * lanes);
      hn::Stream(v0, d, to + i);
      hn::Stream(v1, d, to + i + lanes);
      hn::Stream(v2, d, to + i + 2 * lanes);
      hn::Stream(v3, d, to + i + 3 * lanes);
    }
    ::hwy::FlushStream();  // See reduce_streaming.
    std::memcpy(to + i, from + i, size_bytes - i);
    return;
  }
#endif
  std::memcpy(destination, source, size_bytes);
}

CopyFunction stream_bytes_function() { return &stream_bytes; }

}  // namespace weft::device::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::device::host {

HWY_EXPORT(stream_bytes_function);
CopyFunction streaming_copy() noexcept { return HWY_DYNAMIC_DISPATCH(stream_bytes_function)(); }

}  // namespace weft::device::host
#endif
