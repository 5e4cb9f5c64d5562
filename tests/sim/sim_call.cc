#include "tests/sim/sim_call.h"

#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "base/random.h"

namespace weft::test {

using collectives::Collective;
using collectives::Contract;
using collectives::Placement;
using device::DataType;
using device::ReduceOp;
using device::oracle::Bits;

namespace {

constexpr std::byte kUntouched{0xa5};

bool is_float(DataType type) { return type >= DataType::f16; }

Bits encode(DataType type, double value) {
  switch (type) {
    case DataType::f16:
    case DataType::bf16: return device::oracle::narrow(type, value);
    case DataType::f32: return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case DataType::f64: return std::bit_cast<std::uint64_t>(value);
    case DataType::i8:
    case DataType::u8: return static_cast<Bits>(static_cast<std::int64_t>(value)) & 0xff;
    case DataType::i32:
    case DataType::u32: return static_cast<Bits>(static_cast<std::int64_t>(value)) & 0xffffffff;
    default: return static_cast<Bits>(static_cast<std::int64_t>(value));
  }
}

bool is_nan(DataType type, Bits bits) {
  switch (type) {
    case DataType::f16:
    case DataType::bf16: return std::isnan(device::oracle::widen(type, bits));
    case DataType::f32: return std::isnan(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case DataType::f64: return std::isnan(std::bit_cast<double>(bits));
    default: return false;
  }
}

}  // namespace

SimBuffer::SimBuffer(SimGroup& group, std::uint32_t rank, fakes::FakeGpu& gpu, Where where, std::size_t size_bytes)
    : memory_(group.memory(rank)), gpu_(gpu), where_(where), size_bytes_(size_bytes) {
  switch (where_) {
    case Where::plain:
      guarded_ = std::make_unique<device::GuardedBuffer>(std::max<std::size_t>(size_bytes, 1));
      data_ = guarded_->last(size_bytes);
      break;
    case Where::allocated: data_ = *memory_.allocate(std::max<std::size_t>(size_bytes, 1)); break;
    case Where::device: data_ = *gpu_.allocate(std::max<std::size_t>(size_bytes, 1)); break;
  }
  write(std::vector<std::byte>(size_bytes, kUntouched));
}

SimBuffer::~SimBuffer() {
  if (where_ == Where::allocated) memory_.release(data_);
  if (where_ == Where::device) gpu_.release(data_);
}

void SimBuffer::write(const std::vector<std::byte>& bytes) {
  if (bytes.empty()) return;
  if (where_ == Where::device) return gpu_.upload(data_, bytes.data(), bytes.size());
  std::memcpy(data_, bytes.data(), bytes.size());
}

std::vector<std::byte> SimBuffer::read() const {
  std::vector<std::byte> bytes(size_bytes_);
  if (bytes.empty()) return bytes;
  if (where_ == Where::device) {
    gpu_.download(bytes.data(), data_, bytes.size());
  } else {
    std::memcpy(bytes.data(), data_, bytes.size());
  }
  return bytes;
}

SimCall::SimCall(SimGroup& group, fakes::FakeGpu& gpu, std::string algorithm, collectives::engine::Call call,
                 const collectives::Shape& shape, std::vector<RankSetup> setups, std::uint64_t seed)
    : group_(group),
      gpu_(gpu),
      algorithm_(std::move(algorithm)),
      call_(call),
      shape_(shape),
      setups_(std::move(setups)),
      seed_(seed),
      requests_(group.ranks()) {
  for (std::uint32_t rank = 0; rank < group.ranks(); ++rank) make_buffers(rank);
}

Bits SimCall::input_bits(std::uint32_t rank, std::uint64_t index) const {
  Random random{seed_ ^ (index * 0x9e3779b97f4a7c15ULL) ^ (std::uint64_t{rank} << 56)};
  const std::uint64_t draw = random.next();
  if (is_float(call_.type) && draw % 61 == 0) return encode(call_.type, std::nan(""));
  const bool is_signed =
      is_float(call_.type) || call_.type == DataType::i8 || call_.type == DataType::i32 || call_.type == DataType::i64;
  // Products of 1 and 2, sums of up to 2, or of up to 1 with both signs.
  const double value = call_.op == ReduceOp::prod ? 1.0 + static_cast<double>(draw / 61 % 2)
                                                  : static_cast<double>(draw / 61 % 3) - (is_signed ? 1.0 : 0.0);
  return encode(call_.type, value);
}

Bits SimCall::expected_bits(std::uint32_t rank, std::uint64_t index) const {
  const std::uint32_t n = group_.ranks();
  const std::uint64_t count = call_.count;
  const std::uint32_t root = call_.contract.root.value();
  const auto reduced = [&](std::uint64_t at) {
    Bits bits = input_bits(0, at);
    for (std::uint32_t r = 1; r < n; ++r) bits = device::oracle::reduce(call_.type, call_.op, bits, input_bits(r, at));
    return call_.op == ReduceOp::avg ? device::oracle::divide(call_.type, bits, n) : bits;
  };
  const auto block = static_cast<std::uint32_t>(index / count);
  switch (call_.contract.collective) {
    case Collective::all_reduce:
    case Collective::reduce: return reduced(index);
    case Collective::broadcast: return input_bits(root, index);
    case Collective::all_gather:
    case Collective::gather: return input_bits(block, index % count);
    case Collective::reduce_scatter: return reduced(rank * count + index);
    case Collective::scatter: return input_bits(root, rank * count + index);
    case Collective::all_to_all: return input_bits(block, rank * count + index % count);
    case Collective::barrier: break;
  }
  return 0;
}

std::vector<std::byte> SimCall::input_bytes(std::uint32_t rank) const {
  const std::size_t size = device::size_of(call_.type);
  std::vector<std::byte> bytes(call_.contract.input_blocks(Rank{rank}) * call_.count * size);
  for (std::uint64_t i = 0; i < bytes.size() / size; ++i) {
    device::oracle::store(call_.type, bytes.data() + i * size, input_bits(rank, i));
  }
  return bytes;
}

void SimCall::make_buffers(std::uint32_t rank) {
  Buffers& buffers = buffers_.emplace_back();
  const RankSetup& setup = setups_[rank];
  Contract contract = call_.contract;
  contract.placement = Placement::in_place;
  const auto shared = contract.collective == Collective::all_to_all ? std::nullopt : contract.shared_block(Rank{rank});
  const std::vector<std::byte> input = input_bytes(rank);
  const std::size_t block_bytes = call_.count * device::size_of(call_.type);
  const std::size_t output_bytes = contract.output_blocks(Rank{rank}) * block_bytes;
  if (!setup.in_place || !shared) {
    contract.placement = Placement::out_of_place;
    buffers.contract = contract;
    buffers.input = std::make_unique<SimBuffer>(group_, rank, gpu_, setup.input, input.size());
    buffers.input->write(input);
    // A rank without an output gives a buffer nevertheless, which nobody may touch.
    buffers.output =
        std::make_unique<SimBuffer>(group_, rank, gpu_, setup.output, output_bytes == 0 ? block_bytes : output_bytes);
    return;
  }
  buffers.contract = contract;
  const std::size_t outer_bytes = std::max(input.size(), output_bytes);
  buffers.outer = std::make_unique<SimBuffer>(group_, rank, gpu_, setup.output, outer_bytes);
  (output_bytes >= input.size() ? buffers.input_offset : buffers.output_offset) = *shared * block_bytes;
  buffers.before = buffers.outer->read();
  std::copy(input.begin(), input.end(), buffers.before.begin() + static_cast<std::ptrdiff_t>(buffers.input_offset));
  buffers.outer->write(buffers.before);
}

std::string SimCall::start(std::uint32_t rank) {
  Buffers& buffers = buffers_[rank];
  collectives::engine::Call own = call_;
  own.contract = buffers.contract;
  const std::byte* input = buffers.outer ? buffers.outer->data() + buffers.input_offset : buffers.input->data();
  std::byte* output = buffers.outer ? buffers.outer->data() + buffers.output_offset : buffers.output->data();
  auto request = group_.engine(rank).start(group_.program(algorithm_, own, shape_, rank), input, output);
  if (!request) return describe() + ": " + request.error().message();
  requests_[rank] = *request;
  return {};
}

bool SimCall::is_finished() const {
  for (std::uint32_t rank = 0; rank < group_.ranks(); ++rank) {
    if (!requests_[rank] || !group_.engine(rank).is_finished(*requests_[rank])) return false;
  }
  return true;
}

std::string SimCall::check() {
  for (std::uint32_t rank = 0; rank < group_.ranks(); ++rank) {
    if (const Status status = group_.engine(rank).collect(*requests_[rank]); !status) {
      return fmt::format("{} on rank {}: {}", describe(), rank, status.error().message());
    }
  }
  for (std::uint32_t rank = 0; rank < group_.ranks(); ++rank) {
    if (std::string wrong = check_rank(rank); !wrong.empty())
      return fmt::format("{} on rank {}: {}", describe(), rank, wrong);
  }
  return {};
}

std::string SimCall::check_rank(std::uint32_t rank) {
  Buffers& buffers = buffers_[rank];
  const std::size_t size = device::size_of(call_.type);
  const std::uint64_t elements = call_.contract.output_blocks(Rank{rank}) * call_.count;
  std::vector<std::byte> got = (buffers.outer ? buffers.outer : buffers.output)->read();
  const std::size_t begin = buffers.output_offset;
  for (std::uint64_t i = 0; i < elements; ++i) {
    const Bits bits = device::oracle::load(call_.type, got.data() + begin + i * size);
    const Bits wanted = expected_bits(rank, i);
    if (bits == wanted || (is_nan(call_.type, bits) && is_nan(call_.type, wanted))) continue;
    return fmt::format("element {} is {:#x}, not {:#x}", i, bits, wanted);
  }
  // Everything else is as it was.
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (i >= begin && i < begin + elements * size) continue;
    if (got[i] != (buffers.outer ? buffers.before[i] : kUntouched)) return fmt::format("byte {} was touched", i);
  }
  if (buffers.input && buffers.input->read() != input_bytes(rank)) return "its input was changed";
  return {};
}

std::string SimCall::describe() const {
  std::string text = fmt::format("{} by {} over {} ranks;", call_.describe(), algorithm_, group_.ranks());
  constexpr const char* kNames[] = {"plain", "allocated", "device"};
  for (const RankSetup& setup : setups_) {
    text += fmt::format(" {}{}>{}", setup.in_place ? "in place " : "", kNames[static_cast<int>(setup.input)],
                        kNames[static_cast<int>(setup.output)]);
  }
  return text;
}

std::string SimCall::explain() const {
  std::string text = describe();
  for (std::uint32_t rank = 0; rank < group_.ranks(); ++rank) {
    if (requests_[rank]) text += "\n  " + group_.engine(rank).explain(*requests_[rank]);
  }
  return text;
}

}  // namespace weft::test
