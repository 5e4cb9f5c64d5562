#include "tests/contract/contract_backends.h"
#include "transport/sim/sim.h"

namespace weft::transport::contract {
namespace {

class SimRig final : public Rig {
 public:
  explicit SimRig(sim::SimOptions options) : cluster_(std::move(options)) { cluster_.connect_all(); }
  Transport& transport(Rank rank) override { return cluster_.transport(rank); }
  void progress() override { cluster_.step(); }
  void kill(Rank rank) override { cluster_.kill(rank); }

 private:
  sim::SimCluster cluster_;
};

Backend backend(const std::string& name, const sim::SimOptions& options) {
  const auto make = [options](std::uint32_t ranks) {
    sim::SimOptions own = options;
    own.ranks = ranks;
    return std::make_unique<SimRig>(own);
  };
  return {.name = name, .make = make, .has_threads = false};
}

sim::SimOptions rough(std::uint64_t seed) {
  return {.seed = seed, .faults = {.delay = Nanos{30'000}, .stall_percent = 5, .post_again_percent = 20}};
}

sim::SimOptions reading(PlainPath plain) {
  sim::SimOptions options = rough(9);
  options.link.large_path = LargePath::read;
  options.link.plain_path = plain;
  options.link.maps_shared_memory = true;
  return options;
}

INSTANTIATE_TEST_SUITE_P(Sim, TransportContract,
                         testing::Values(backend("smooth", {}), backend("rough1", rough(1)),
                                         backend("rough2", rough(2)), backend("reading", reading(PlainPath::read)),
                                         backend("staging", reading(PlainPath::staging))),
                         name_of_backend);

}  // namespace
}  // namespace weft::transport::contract
