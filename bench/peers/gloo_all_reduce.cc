// All-reduce of Gloo, straight from its C++ library and over its TCP transport.
//
// Usage: PEER_RANK=0 PEER_RANKS=2 PEER_STORE=DIRECTORY PEER_ADDRESS=127.0.0.1 gloo_all_reduce -b 8 -e 64M -f 4
// One process per rank; PEER_STORE is an empty directory that all ranks see, PEER_ADDRESS this rank's own address.
// PEER_GLOO_ALGORITHM: ring or bcube, as both are Gloo's own; the comparison takes the faster. Method: peer.h.
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "peer.h"

namespace {

using Context = std::shared_ptr<gloo::rendezvous::Context>;

gloo::AllreduceOptions::Algorithm algorithm() {
  return std::string(text_setting("PEER_GLOO_ALGORITHM", "ring")) == "bcube" ? gloo::AllreduceOptions::Algorithm::BCUBE
                                                                             : gloo::AllreduceOptions::Algorithm::RING;
}

void all_reduce(const Context& context, float* input, float* output, size_t count) {
  gloo::AllreduceOptions options(context);
  options.setAlgorithm(algorithm());
  options.setInput(input, count);
  options.setOutput(output, count);
  using Reduce = void (*)(void*, const void*, const void*, size_t);
  options.setReduceFunction(static_cast<Reduce>(&gloo::sum<float>));
  gloo::allreduce(options);
}

// The element-wise maximum over the ranks, on rank 0.
void longest_at_root(const Context& context, std::vector<double>& times) {
  std::vector<double> longest(times.size());
  gloo::ReduceOptions options(context);
  options.setInput(times.data(), times.size());
  options.setOutput(longest.data(), longest.size());
  options.setRoot(0);
  options.setReduceFunction([](void* to, const void* a, const void* b, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      static_cast<double*>(to)[i] = std::max(static_cast<const double*>(a)[i], static_cast<const double*>(b)[i]);
    }
  });
  gloo::reduce(options);
  times = longest;
}

void measure(const Context& context, size_t bytes) {
  const size_t count = bytes / sizeof(float);
  std::vector<float> input(count);
  std::vector<float> output(count);
  fill_input(input.data(), count, context->rank);
  uint64_t started = 0;
  for (int i = 0; i < 2 * kWarmUps; ++i) {
    if (i == kWarmUps) started = now_ns();
    all_reduce(context, input.data(), output.data(), count);
  }
  int iterations = iterations_for((now_ns() - started) / kWarmUps);
  gloo::BroadcastOptions agree(context);
  agree.setOutput(&iterations, 1);
  agree.setRoot(0);
  gloo::broadcast(agree);
  size_t wrong = count_wrong_sums(output.data(), count, context->size);
  std::fill(output.begin(), output.end(), 0.0F);

  std::vector<double> times(static_cast<size_t>(iterations));
  gloo::BarrierOptions together(context);
  gloo::barrier(together);
  for (double& time : times) {
    const uint64_t from = now_ns();
    all_reduce(context, input.data(), output.data(), count);
    time = static_cast<double>(now_ns() - from);
  }
  wrong += count_wrong_sums(output.data(), count, context->size);
  longest_at_root(context, times);
  std::vector<double> wrongs{static_cast<double>(wrong)};
  longest_at_root(context, wrongs);
  if (context->rank == 0) {
    print_row({"gloo", text_setting("PEER_VERSION", "unknown"), "all_reduce", context->size, "tcp", bytes},
              times.data(), iterations, static_cast<size_t>(wrongs[0]));
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const int rank = std::atoi(text_setting("PEER_RANK", "0"));
  const int ranks = std::atoi(text_setting("PEER_RANKS", "1"));
  gloo::transport::tcp::attr where;
  where.hostname = text_setting("PEER_ADDRESS", "127.0.0.1");
  auto device = gloo::transport::tcp::CreateDevice(where);
  gloo::rendezvous::FileStore store(text_setting("PEER_STORE", "."));
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  context->connectFullMesh(store, device);
  const sizes sizes = parse_sizes(argc, argv);
  for (size_t bytes = sizes.begin_bytes; bytes <= sizes.end_bytes; bytes *= sizes.factor) measure(context, bytes);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "gloo_all_reduce: %s\n", error.what());
  return 1;
}
