// What this machine's memory allows for an all-reduce: the line that a bench result is held against. Processes share
// their buffers, and no library is between them.
//
//   limit_all_reduce --ranks N -b 8 -e 64M -f 4
//
// Three variants, and the fastest for a size is its limit:
//   slot    every rank publishes its values in a slot of a shared ring (one copy) and reduces what the others
//   published; mapped  every rank reduces its share straight from all ranks' mapped buffers into all ranks' results;
//   stream  the same with stores that bypass the caches, which win once the results leave them.
// Method and output: peer.h, one line per size and variant.
#include <immintrin.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "peer.h"

namespace {

constexpr int kMaxRanks = 8;
constexpr size_t kSlotBytes = 64 << 10;
constexpr size_t kInlineBytes = 56;  // Of a cache line, beside the sequence number.

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

struct alignas(64) Line {
  std::atomic<uint64_t> sequence{0};
  char values[kInlineBytes];
};

// One rank's place in the shared memory; the buffers follow at offsets that all ranks compute alike.
struct alignas(128) Post {
  Line lines[2];                              // Small values travel in the line that announces them.
  alignas(128) std::atomic<uint64_t> here;    // Inputs may be read.
  alignas(128) std::atomic<uint64_t> done;    // My share is in all results.
  alignas(128) std::atomic<uint64_t> agreed;  // Rank 0: the number of iterations; all: the number of wrong values.
  alignas(128) char slots[2][kSlotBytes];
};

struct Group {
  int rank;
  int ranks;
  bool is_oversubscribed;
  Post* posts;
  float* inputs[kMaxRanks];
  float* outputs[kMaxRanks];
};

void wait_for(const Group& group, const std::atomic<uint64_t>& word, uint64_t least) {
  for (int spins = 0; word.load(std::memory_order_acquire) < least; ++spins) {
    if (group.is_oversubscribed) {
      sched_yield();
    } else if (spins < 64) {
      _mm_pause();
    }
  }
}

// Adds `num` inputs. Two results, as an out-of-place all-reduce of two ranks has, are stored in one pass.
template <bool kStream>
__attribute__((target("avx2"))) void add_avx2(float* const* out, int num_out, const float* const* in, int num,
                                              size_t count) {
  size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    __m256 low = _mm256_loadu_ps(in[0] + i);
    __m256 high = _mm256_loadu_ps(in[0] + i + 8);
    for (int k = 1; k < num; ++k) {
      low = _mm256_add_ps(low, _mm256_loadu_ps(in[k] + i));
      high = _mm256_add_ps(high, _mm256_loadu_ps(in[k] + i + 8));
    }
    for (int k = 0; k < num_out; ++k) {
      if constexpr (kStream) {
        _mm256_stream_ps(out[k] + i, low);
        _mm256_stream_ps(out[k] + i + 8, high);
      } else {
        _mm256_storeu_ps(out[k] + i, low);
        _mm256_storeu_ps(out[k] + i + 8, high);
      }
    }
  }
  for (; i < count; ++i) {
    float sum = in[0][i];
    for (int k = 1; k < num; ++k) sum += in[k][i];
    for (int k = 0; k < num_out; ++k) out[k][i] = sum;
  }
  if constexpr (kStream) _mm_sfence();
}

template <bool kStream>
void add_plain(float* const* out, int num_out, const float* const* in, int num, size_t count) {
  size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    __m128 sum = _mm_loadu_ps(in[0] + i);
    for (int k = 1; k < num; ++k) sum = _mm_add_ps(sum, _mm_loadu_ps(in[k] + i));
    for (int k = 0; k < num_out; ++k) {
      if constexpr (kStream) {
        _mm_stream_ps(out[k] + i, sum);
      } else {
        _mm_storeu_ps(out[k] + i, sum);
      }
    }
  }
  for (; i < count; ++i) {
    float sum = in[0][i];
    for (int k = 1; k < num; ++k) sum += in[k][i];
    for (int k = 0; k < num_out; ++k) out[k][i] = sum;
  }
  if constexpr (kStream) _mm_sfence();
}

template <bool kStream>
void add(float* const* out, int num_out, const float* const* in, int num, size_t count) {
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  (has_avx2 ? add_avx2<kStream> : add_plain<kStream>)(out, num_out, in, num, count);
}

// Values inside the announcing line, or in a slot. Two of each take turns: nobody announces n + 2 before everybody has
// announced n + 1, hence finished reading n.
void all_reduce_slot(const Group& group, uint64_t call, size_t bytes) {
  const size_t turn = call % 2;
  const bool is_inline = bytes <= kInlineBytes;
  Line& mine = group.posts[group.rank].lines[turn];
  std::memcpy(is_inline ? mine.values : group.posts[group.rank].slots[turn], group.inputs[group.rank], bytes);
  mine.sequence.store(call, std::memory_order_release);
  const float* in[kMaxRanks];
  for (int k = 0; k < group.ranks; ++k) {
    Line& line = group.posts[k].lines[turn];
    wait_for(group, line.sequence, call);
    in[k] = reinterpret_cast<const float*>(is_inline ? line.values : group.posts[k].slots[turn]);
  }
  in[group.rank] = group.inputs[group.rank];
  add<false>(&group.outputs[group.rank], 1, in, group.ranks, bytes / sizeof(float));
}

template <bool kStream>
void all_reduce_mapped(const Group& group, uint64_t call, size_t bytes) {
  Post& mine = group.posts[group.rank];
  mine.here.store(call, std::memory_order_release);
  for (int k = 0; k < group.ranks; ++k) wait_for(group, group.posts[k].here, call);
  const size_t count = bytes / sizeof(float);
  // Shares are whole cache lines: no line is written by two ranks, and stores that bypass the cache are aligned.
  const size_t share = (count / static_cast<size_t>(group.ranks) + 15) / 16 * 16;
  const size_t from = std::min(count, share * static_cast<size_t>(group.rank));
  const size_t to = group.rank + 1 == group.ranks ? count : std::min(count, from + share);
  const float* in[kMaxRanks];
  float* out[kMaxRanks];
  for (int k = 0; k < group.ranks; ++k) in[k] = group.inputs[k] + from, out[k] = group.outputs[k] + from;
  add<kStream>(out, group.ranks, in, group.ranks, to - from);
  mine.done.store(call, std::memory_order_release);
  for (int k = 0; k < group.ranks; ++k) wait_for(group, group.posts[k].done, call);
}

using Variant = void (*)(const Group&, uint64_t, size_t);

void measure(const Group& group, uint64_t& call, size_t bytes, const char* name, Variant once, double* shared_times) {
  const size_t count = bytes / sizeof(float);
  fill_input(group.inputs[group.rank], count, group.rank);
  std::memset(group.outputs[group.rank], 0, bytes);
  const auto meet = [&] { all_reduce_slot(group, ++call, 4); };
  meet();
  uint64_t started = 0;
  for (int i = 0; i < 2 * kWarmUps; ++i) {
    if (i == kWarmUps) started = now_ns();
    once(group, ++call, bytes);
  }
  size_t wrong = count_wrong_sums(group.outputs[group.rank], count, group.ranks);
  if (group.rank == 0) group.posts[0].agreed.store(iterations_for((now_ns() - started) / kWarmUps));
  meet();
  const int iterations = static_cast<int>(group.posts[0].agreed.load());
  std::memset(group.outputs[group.rank], 0, bytes);
  meet();
  double* times = shared_times + static_cast<size_t>(group.rank) * kMostIterations;
  for (int i = 0; i < iterations; ++i) {
    const uint64_t from = now_ns();
    once(group, ++call, bytes);
    times[i] = static_cast<double>(now_ns() - from);
  }
  wrong += count_wrong_sums(group.outputs[group.rank], count, group.ranks);
  if (group.rank != 0) group.posts[group.rank].agreed.store(wrong);
  meet();
  if (group.rank == 0) {
    for (int k = 1; k < group.ranks; ++k) {
      wrong += group.posts[k].agreed.load();
      for (int i = 0; i < iterations; ++i) times[i] = std::max(times[i], shared_times[k * kMostIterations + i]);
    }
    print_row({"limit", name, "all_reduce", group.ranks, "shm", bytes}, times, iterations, wrong);
  }
  meet();
}

void* map_shared(size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (at == MAP_FAILED) die("mmap");
  return at;
}

int run_all_reduce(int ranks, sizes sizes) {
  if (ranks < 2 || ranks > kMaxRanks) {
    std::fprintf(stderr, "limit: 2 to %d ranks\n", kMaxRanks);
    return 64;
  }
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) die("sched_getaffinity");
  std::vector<int> processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &allowed)) processors.push_back(i);
  }
  Group group{};
  group.ranks = ranks;
  group.is_oversubscribed = static_cast<size_t>(ranks) > processors.size();
  group.posts = new (map_shared(sizeof(Post) * static_cast<size_t>(ranks))) Post[static_cast<size_t>(ranks)];
  auto* times = static_cast<double*>(map_shared(sizeof(double) * kMostIterations * static_cast<size_t>(ranks)));
  for (int k = 0; k < ranks; ++k) {
    group.inputs[k] = static_cast<float*>(map_shared(sizes.end_bytes));
    group.outputs[k] = static_cast<float*>(map_shared(sizes.end_bytes));
  }
  for (int k = 1; k < ranks; ++k) {
    const pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) {
      group.rank = k;
      break;
    }
  }
  if (!group.is_oversubscribed) {
    cpu_set_t mine;
    CPU_ZERO(&mine);
    CPU_SET(processors[static_cast<size_t>(group.rank)], &mine);
    if (sched_setaffinity(0, sizeof mine, &mine) != 0) die("sched_setaffinity");
  }
  uint64_t call = 0;
  for (size_t bytes = sizes.begin_bytes; bytes <= sizes.end_bytes; bytes *= sizes.factor) {
    if (bytes <= kSlotBytes) measure(group, call, bytes, "slot", all_reduce_slot, times);
    if (bytes >= 1024) measure(group, call, bytes, "mapped", all_reduce_mapped<false>, times);
    if (bytes >= (256u << 10)) measure(group, call, bytes, "stream", all_reduce_mapped<true>, times);
  }
  if (group.rank != 0) std::exit(0);
  int code = 0;
  for (int k = 1; k < ranks; ++k) {
    int status = 0;
    if (wait(&status) < 0 || status != 0) code = 1;
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  const bool has_ranks = argc > 2 && std::string(argv[1]) == "--ranks";
  return run_all_reduce(has_ranks ? std::atoi(argv[2]) : 2, parse_sizes(argc, argv));
}
