#include "tests/multi/call.h"

#include <bit>
#include <cstdlib>
#include <cstring>

#include "tests/multi/check.h"

namespace weft::multi {

using device::DataType;
using device::oracle::Bits;

namespace {

DataType to_type(weft_type_t type) { return static_cast<DataType>(type); }

Bits encode(DataType type, double value) {
  switch (type) {
    case DataType::f16:
    case DataType::bf16: return device::oracle::narrow(type, value);
    case DataType::f32: return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case DataType::f64: return std::bit_cast<std::uint64_t>(value);
    default: return static_cast<Bits>(value);
  }
}

bool reduces(Kind kind) { return kind == Kind::all_reduce || kind == Kind::reduce || kind == Kind::reduce_scatter; }

}  // namespace

Call::Call(weft_communicator_t* communicator, Shape shape)
    : communicator_(communicator), shape_(shape), rank_(weft_rank(communicator)), size_(weft_size(communicator)) {
  const bool is_root = rank_ == shape_.root;
  switch (shape_.kind) {
    case Kind::all_reduce: break;
    case Kind::reduce: output_blocks_ = is_root ? 1 : 0; break;
    case Kind::broadcast: input_blocks_ = is_root ? 1 : 0; break;
    case Kind::all_gather: output_blocks_ = size_; break;
    case Kind::reduce_scatter: input_blocks_ = size_; break;
    case Kind::gather: output_blocks_ = is_root ? size_ : 0; break;
    case Kind::scatter: input_blocks_ = is_root ? size_ : 0; break;
    case Kind::all_to_all: input_blocks_ = output_blocks_ = size_; break;
  }
  const std::size_t size = device::size_of(to_type(shape_.type));
  const std::size_t block = shape_.count * size;
  if (shape_.in_place && shape_.kind != Kind::all_to_all && input_blocks_ > 0 && output_blocks_ > 0) {
    std::byte* outer = allocate(std::max(input_blocks_, output_blocks_) * block);
    send_ = receive_ = outer;
    if (output_blocks_ > input_blocks_) send_ += rank_ * block;
    if (input_blocks_ > output_blocks_) receive_ += rank_ * block;
  } else {
    // Buffers that a rank does not use are null.
    if (input_blocks_ > 0) send_ = allocate(input_blocks_ * block);
    if (output_blocks_ > 0) receive_ = allocate(output_blocks_ * block);
  }
  for (std::size_t i = 0; i < input_blocks_ * shape_.count; ++i) {
    device::oracle::store(to_type(shape_.type), send_ + i * size, value(rank_, i));
  }
}

Call::~Call() {
  for (std::byte* memory : owned_) {
    if (shape_.is_allocated) {
      succeed(weft_memory_free(memory), "weft_memory_free");
    } else {
      std::free(memory);
    }
  }
}

std::byte* Call::allocate(std::size_t size_bytes) {
  if (size_bytes == 0) return nullptr;
  void* memory = nullptr;
  if (shape_.is_allocated) {
    succeed(weft_memory_allocate(size_bytes, &memory), "weft_memory_allocate");
  } else {
    memory = std::malloc(size_bytes);
  }
  std::memset(memory, 0xa5, size_bytes);
  owned_.push_back(static_cast<std::byte*>(memory));
  return owned_.back();
}

Bits Call::value(std::uint32_t rank, std::size_t index) const {
  const std::size_t mixed = (index * 31 + rank * 17 + static_cast<std::size_t>(shape_.kind)) % 1009;
  return encode(to_type(shape_.type),
                shape_.op == WEFT_PROD ? 1.0 + static_cast<double>(mixed % 2) : static_cast<double>(mixed % 5));
}

Bits Call::expected(std::size_t index) const {
  const auto reduced = [&](std::size_t at) {
    const DataType type = to_type(shape_.type);
    const auto op = static_cast<device::ReduceOp>(shape_.op);
    Bits bits = value(0, at);
    for (std::uint32_t rank = 1; rank < size_; ++rank) bits = device::oracle::reduce(type, op, bits, value(rank, at));
    return op == device::ReduceOp::avg ? device::oracle::divide(type, bits, size_) : bits;
  };
  const std::size_t count = shape_.count;
  const auto block = static_cast<std::uint32_t>(index / count);
  switch (shape_.kind) {
    case Kind::all_reduce:
    case Kind::reduce: return reduced(index);
    case Kind::broadcast: return value(shape_.root, index);
    case Kind::all_gather:
    case Kind::gather: return value(block, index % count);
    case Kind::reduce_scatter: return reduced(rank_ * count + index);
    case Kind::scatter: return value(shape_.root, rank_ * count + index);
    case Kind::all_to_all: return value(block, rank_ * count + index % count);
  }
  return 0;
}

weft_status_t Call::run() {
  weft_communicator_t* c = communicator_;
  const auto& [kind, type, op, count, root, in_place, is_allocated] = shape_;
  switch (kind) {
    case Kind::all_reduce: return weft_all_reduce(c, send_, receive_, count, type, op);
    case Kind::reduce: return weft_reduce(c, send_, receive_, count, type, op, root);
    case Kind::broadcast: return weft_broadcast(c, send_, receive_, count, type, root);
    case Kind::all_gather: return weft_all_gather(c, send_, receive_, count, type);
    case Kind::reduce_scatter: return weft_reduce_scatter(c, send_, receive_, count, type, op);
    case Kind::gather: return weft_gather(c, send_, receive_, count, type, root);
    case Kind::scatter: return weft_scatter(c, send_, receive_, count, type, root);
    case Kind::all_to_all: return weft_all_to_all(c, send_, receive_, count, type);
  }
  return WEFT_ERROR_INVALID_ARGUMENT;
}

weft_status_t Call::start(weft_request_t* request) {
  weft_communicator_t* c = communicator_;
  const auto& [kind, type, op, count, root, in_place, is_allocated] = shape_;
  switch (kind) {
    case Kind::all_reduce: return weft_start_all_reduce(c, send_, receive_, count, type, op, request);
    case Kind::reduce: return weft_start_reduce(c, send_, receive_, count, type, op, root, request);
    case Kind::broadcast: return weft_start_broadcast(c, send_, receive_, count, type, root, request);
    case Kind::all_gather: return weft_start_all_gather(c, send_, receive_, count, type, request);
    case Kind::reduce_scatter: return weft_start_reduce_scatter(c, send_, receive_, count, type, op, request);
    case Kind::gather: return weft_start_gather(c, send_, receive_, count, type, root, request);
    case Kind::scatter: return weft_start_scatter(c, send_, receive_, count, type, root, request);
    case Kind::all_to_all: return weft_start_all_to_all(c, send_, receive_, count, type, request);
  }
  return WEFT_ERROR_INVALID_ARGUMENT;
}

void Call::check() {
  const DataType type = to_type(shape_.type);
  const std::size_t size = device::size_of(type);
  for (std::size_t i = 0; i < output_blocks_ * shape_.count; ++i) {
    const Bits got = device::oracle::load(type, receive_ + i * size);
    if (const Bits wanted = expected(i); got != wanted) {
      fail(describe() + ": element " + std::to_string(i) + " is " + std::to_string(got) + ", not " +
           std::to_string(wanted));
    }
  }
}

std::string Call::describe() const {
  constexpr const char* kNames[] = {"all_reduce",     "reduce", "broadcast", "all_gather",
                                    "reduce_scatter", "gather", "scatter",   "all_to_all"};
  return std::string(kNames[static_cast<int>(shape_.kind)]) + " type " + std::to_string(shape_.type) +
         (reduces(shape_.kind) ? " op " + std::to_string(shape_.op) : "") + " count " + std::to_string(shape_.count) +
         " root " + std::to_string(shape_.root) + (shape_.in_place ? " in place" : "") +
         (shape_.is_allocated ? " allocated" : "") + " rank " + std::to_string(rank_) + " of " + std::to_string(size_);
}

}  // namespace weft::multi
