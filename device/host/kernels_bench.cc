// Kernels against what the memory allows. Bytes/s count what the call reads and writes (3 per reduced byte, 2 per
// copied one), so that memory_limit, a plain loop of the compiler over the same three streams, compares directly.
//
//   bench/kernels_bench --benchmark_filter='reduce/float/sum'
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstring>
#include <string>

#include "device/devices.h"
#include "device/host/kernels.h"

namespace weft::device {
namespace {

/// Page-aligned memory that is really there.
class Buffer {
 public:
  explicit Buffer(std::size_t size_bytes)
      : size_bytes_((size_bytes + 4095) / 4096 * 4096),
        data_(static_cast<std::byte*>(
            mmap(nullptr, size_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0))) {
    std::memset(data_, 0, size_bytes_);
  }
  ~Buffer() { munmap(data_, size_bytes_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  std::size_t size_bytes_;
  std::byte* data_;
};

enum class Place { apart, in_place };

void run_reduce(benchmark::State& state, DataType type, ReduceOp op, Stores stores, Place place) {
  const auto size_bytes = static_cast<std::size_t>(state.range(0));
  const Buffer left(size_bytes), right(size_bytes), result(size_bytes);
  std::byte* const destination = place == Place::apart ? result.data() : left.data();
  for (auto _ : state) {
    reduce_function(type, op, stores)(destination, left.data(), right.data(), size_bytes / size_of(type));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(3 * size_bytes) * state.iterations());
  state.SetLabel(kernel_target());
}

/// Reads all of it, as the next step of a collective or its caller does.
std::uint64_t consume(const std::byte* data, std::size_t size_bytes) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < size_bytes; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, data + i, 8);
    sum += word;
  }
  return sum;
}

/// What the streaming thresholds come from: stores that bypass the cache are paid by whoever reads the result next.
void run_reduce_and_read(benchmark::State& state, Stores stores) {
  const auto size_bytes = static_cast<std::size_t>(state.range(0));
  const Buffer left(size_bytes), right(size_bytes), result(size_bytes);
  for (auto _ : state) {
    reduce_function(DataType::f32, ReduceOp::sum, stores)(result.data(), left.data(), right.data(), size_bytes / 4);
    benchmark::DoNotOptimize(consume(result.data(), size_bytes));
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(4 * size_bytes) * state.iterations());
}

void run_copy_and_read(benchmark::State& state, Stores stores) {
  const auto size_bytes = static_cast<std::size_t>(state.range(0));
  const Buffer source(size_bytes), destination(size_bytes);
  for (auto _ : state) {
    copy_bytes(destination.data(), source.data(), size_bytes, stores);
    benchmark::DoNotOptimize(consume(destination.data(), size_bytes));
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(3 * size_bytes) * state.iterations());
}

void run_copy(benchmark::State& state, Stores stores) {
  const auto size_bytes = static_cast<std::size_t>(state.range(0));
  const Buffer source(size_bytes), destination(size_bytes);
  for (auto _ : state) {
    copy_bytes(destination.data(), source.data(), size_bytes, stores);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(2 * size_bytes) * state.iterations());
}

void memory_limit(benchmark::State& state) {
  const auto size_bytes = static_cast<std::size_t>(state.range(0));
  const Buffer left(size_bytes), right(size_bytes), result(size_bytes);
  const auto* a = reinterpret_cast<const std::uint64_t*>(left.data());
  const auto* b = reinterpret_cast<const std::uint64_t*>(right.data());
  auto* d = reinterpret_cast<std::uint64_t*>(result.data());
  for (auto _ : state) {
    for (std::size_t i = 0; i < size_bytes / 8; ++i) d[i] = a[i] ^ b[i];
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(3 * size_bytes) * state.iterations());
}
BENCHMARK(memory_limit)->RangeMultiplier(4)->Range(4 << 10, 64 << 20);

void find_owner(benchmark::State& state) {
  const std::byte on_stack{};
  const std::byte* memory = &on_stack;
  for (auto _ : state) {
    benchmark::DoNotOptimize(memory);
    benchmark::DoNotOptimize(&device_of(memory));
  }
}
BENCHMARK(find_owner);

void register_all() {
  constexpr std::string_view kStores[] = {"automatic", "cached", "streaming"};
  for (std::size_t stores = 0; stores < 3; ++stores) {
    const auto mode = static_cast<Stores>(stores);
    for (const DataType type : {DataType::f32, DataType::bf16, DataType::f16}) {
      const std::string name = "reduce/" + std::string(name_of(type)) + "/sum/" + std::string(kStores[stores]);
      benchmark::RegisterBenchmark(name.c_str(), run_reduce, type, ReduceOp::sum, mode, Place::apart)
          ->Arg(8)
          ->RangeMultiplier(2)
          ->Range(4 << 10, 64 << 20);
    }
    benchmark::RegisterBenchmark(("copy/" + std::string(kStores[stores])).c_str(), run_copy, mode)
        ->Arg(8)
        ->RangeMultiplier(2)
        ->Range(4 << 10, 64 << 20);
  }
  for (const Stores mode : {Stores::cached, Stores::streaming}) {
    const std::string name(kStores[static_cast<std::size_t>(mode)]);
    benchmark::RegisterBenchmark(("reduce_and_read/" + name).c_str(), run_reduce_and_read, mode)
        ->RangeMultiplier(2)
        ->Range(256 << 10, 64 << 20);
    benchmark::RegisterBenchmark(("copy_and_read/" + name).c_str(), run_copy_and_read, mode)
        ->RangeMultiplier(2)
        ->Range(256 << 10, 64 << 20);
  }
  benchmark::RegisterBenchmark("in_place/float/sum", run_reduce, DataType::f32, ReduceOp::sum, Stores::cached,
                               Place::in_place)
      ->RangeMultiplier(4)
      ->Range(4 << 10, 64 << 20);
  // Everything once, in cache and from memory: an operation that is slower than its type's sum shows here.
  for (std::size_t type = 0; type < kDataTypes; ++type) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::min, ReduceOp::max}) {
      const auto data_type = static_cast<DataType>(type);
      const std::string name = "all/" + std::string(name_of(data_type)) + "/" + std::string(name_of(op));
      benchmark::RegisterBenchmark(name.c_str(), run_reduce, data_type, op, Stores::automatic, Place::apart)
          ->Arg(256 << 10)
          ->Arg(32 << 20);
    }
  }
}

}  // namespace
}  // namespace weft::device

int main(int count, char** arguments) {
  benchmark::Initialize(&count, arguments);
  weft::device::register_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
