#include "tests/contract/contract_backends.h"
#include "transport/tcp/tcp.h"

namespace weft::transport::contract {
namespace {

Backend backend(std::string name, std::uint32_t streams, std::uint64_t socket_buffer_bytes) {
  const auto make = [=](std::uint32_t ranks) -> std::unique_ptr<Rig> {
    const Secret secret = Secret::random();
    return std::make_unique<ThreadedRig>(ranks, [=](Rank rank) {
      auto made = tcp::create_tcp({.rank = rank,
                                   .secret = secret,
                                   .listen_on = {"127.0.0.1"},
                                   .streams = streams,
                                   .socket_buffer_bytes = socket_buffer_bytes});
      EXPECT_TRUE(made) << made.error().message();
      return std::move(*made);
    });
  };
  return {.name = std::move(name), .make = make};
}

INSTANTIATE_TEST_SUITE_P(Tcp, TransportContract,
                         testing::Values(backend("one_stream", 1, 0), backend("three_streams", 3, 0),
                                         backend("fixed_buffers", 2, 256 << 10)),
                         name_of_backend);

}  // namespace
}  // namespace weft::transport::contract
