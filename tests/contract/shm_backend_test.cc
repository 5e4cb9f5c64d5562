#include "tests/contract/contract_backends.h"
#include "transport/shm/shared_memory.h"
#include "transport/shm/shm_transport.h"

namespace weft::transport::contract {
namespace {

class ShmRig final : public ThreadedRig {
 public:
  using ThreadedRig::ThreadedRig;
  ~ShmRig() override {
    transports_.clear();
    for (std::byte* memory : shared_) EXPECT_TRUE(shm::release_shared_memory(memory));
  }
  [[nodiscard]] std::span<std::byte> allocate(Rank rank, std::size_t size_bytes, device::MemoryKind kind) override {
    if (kind != device::MemoryKind::shared) return ThreadedRig::allocate(rank, size_bytes, kind);
    auto memory = shm::allocate_shared_memory(size_bytes);
    EXPECT_TRUE(memory) << memory.error().message();
    shared_.push_back(*memory);
    return {*memory, size_bytes};
  }

 private:
  std::vector<std::byte*> shared_;
};

/// `num_local_ranks` decides the sizes of the rings and, over 16, that senders raise a flag.
Backend backend(std::string name, std::uint32_t num_local_ranks, shm::PlainCopy plain_copy) {
  const auto make = [=](std::uint32_t ranks) -> std::unique_ptr<Rig> {
    return std::make_unique<ShmRig>(ranks, [=](Rank rank) {
      auto made = shm::make_shm_transport({.rank = rank, .num_local_ranks = num_local_ranks, .plain_copy = plain_copy});
      EXPECT_TRUE(made) << made.error().message();
      return std::move(*made);
    });
  };
  return {.name = std::move(name), .make = make};
}

INSTANTIATE_TEST_SUITE_P(Shm, TransportContract,
                         testing::Values(backend("two_ranks", 2, shm::PlainCopy::automatic),
                                         backend("staging", 2, shm::PlainCopy::staging),
                                         backend("of_many_ranks", 256, shm::PlainCopy::readv)),
                         name_of_backend);

}  // namespace
}  // namespace weft::transport::contract
