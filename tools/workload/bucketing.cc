#include "tools/workload/bucketing.h"

#include <utility>

namespace weft::tools {

std::vector<Bucket> pack(std::span<const std::uint64_t> tensor_bytes, const Bucketing& bucketing) {
  std::vector<Bucket> buckets;
  Bucket open;
  for (std::size_t step = 0; step < tensor_bytes.size(); ++step) {
    const std::size_t at = bucketing.order == Bucketing::Order::reverse ? tensor_bytes.size() - 1 - step : step;
    open.tensors.push_back(at);
    open.size_bytes += tensor_bytes[at];
    if (open.size_bytes >= (buckets.empty() ? bucketing.first_bytes : bucketing.cap_bytes)) {
      buckets.push_back(std::exchange(open, {}));
    }
  }
  if (!open.tensors.empty()) buckets.push_back(std::move(open));
  return buckets;
}

}  // namespace weft::tools
