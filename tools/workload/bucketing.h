#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft::tools {

/// How gradients are packed into all-reduces. The defaults are those of PyTorch's DistributedDataParallel.
struct Bucketing {
  enum class Order : std::uint8_t { forward, reverse };
  std::uint64_t first_bytes = 1U << 20;
  std::uint64_t cap_bytes = 25U << 20;
  Order order = Order::reverse;  ///< Gradients become ready from the last layer to the first.
};

/// Some tensors that are reduced as one.
struct Bucket {
  std::vector<std::size_t> tensors;  ///< Positions in the input, in the order of packing.
  std::uint64_t size_bytes = 0;
};

/// Packs tensors of one type in order. A bucket takes tensors until it has reached its cap, which the last one may
/// exceed, however large it is; the first bucket has a cap of its own, so that communication starts early.
/// Source: PyTorch, compute_bucket_assignment_by_size; the buckets are those that DDP uses from its second step on.
std::vector<Bucket> pack(std::span<const std::uint64_t> tensor_bytes, const Bucketing& bucketing);

}  // namespace weft::tools
