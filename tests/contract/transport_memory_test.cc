#include <gtest/gtest.h>

#include "tests/contract/contract_backends.h"
#include "tests/contract/failing_allocations.h"

// A process at the end of its memory: calls that throw nothing answer with an error.
namespace weft::transport::contract {
namespace {

TEST_P(TransportContract, PostsForWhichThereIsNoMemoryAnswerSo) {
  std::size_t num_refused = 0;
  const auto look = [&](const auto& result, std::uint32_t num_good) {
    if (result) return;
    num_refused += result.error().code() == ErrorCode::limit_exceeded ? 1 : 0;
    EXPECT_NE(result.error().code(), ErrorCode::system) << num_good << ": " << result.error().message();
  };
  for (std::uint32_t num_good = 0; num_good < 6; ++num_good) {
    start(2);
    const Block& own = block(kA, 1 << 20);
    const Block& theirs = block(kB, 1 << 20);
    const auto message = pattern(1, capabilities().message_size_max);
    const std::vector<std::byte> too_long(capabilities().message_size_max + 1);
    Endpoint& endpoint = link(kA, kB);
    std::uint64_t token = 1'000'000;
    // More than the link holds, so that what waits for room has to be kept somewhere.
    for (int i = 0; i < 400; ++i) {
      const test::FailingAllocations failing(num_good);
      look(endpoint.post_message(message, {}), num_good);
      if (i % 40 != 0) continue;
      look(endpoint.post_write(own.local(0, 1 << 20), theirs.remote(0, 1 << 20), 5, Token{++token}), num_good);
      look(endpoint.post_read(own.local(0, 100), theirs.remote(0, 100), Token{++token}), num_good);
      look(endpoint.post_read(own.local(0, 100), theirs.remote(1 << 20, 100), Token{++token}), num_good);
      look(endpoint.load_pointer(theirs.remote(0, 100)), num_good);
      look(endpoint.post_message(too_long, {}), num_good);
      std::array<Completion, 8> out;
      if (GetParam().has_threads) (void)transport(kA).poll(out);  // The simulation is no part of what is delivered.
    }
    const test::FailingAllocations failing(num_good);
    look(transport(kA).register_memory(own.bytes.data(), 100, device::MemoryKind::device), num_good);
    if (GetParam().has_threads) link(kA, kB).close();
    look(endpoint.post_message(message, {}), num_good);
  }
  EXPECT_GT(num_refused, 0u);
}

}  // namespace
}  // namespace weft::transport::contract
