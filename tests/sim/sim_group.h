#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithm.h"
#include "collectives/engine/engine.h"
#include "device/device.h"
#include "transport/sim/sim.h"

namespace weft::test {

/// Memory of a simulated rank; what it hands out counts as shared where the links can map it.
class SimMemory final : public collectives::engine::MemorySource {
 public:
  explicit SimMemory(bool is_shared) : is_shared_(is_shared) {}
  Result<std::byte*> allocate(std::size_t size_bytes) override {
    auto memory = std::make_unique<std::byte[]>(size_bytes + 4096);
    std::byte* aligned = memory.get() + (4096 - reinterpret_cast<std::uintptr_t>(memory.get()) % 4096) % 4096;
    blocks_[aligned] = {std::move(memory), size_bytes};
    return aligned;
  }
  void release(std::byte* memory) override { blocks_.erase(memory); }
  [[nodiscard]] std::size_t num_blocks() const noexcept { return blocks_.size(); }
  [[nodiscard]] device::MemoryKind kind_of(const std::byte* memory, std::size_t size_bytes) const noexcept override {
    if (!is_shared_) return device::MemoryKind::host;
    for (const auto& [base, block] : blocks_) {
      if (memory >= base && memory + size_bytes <= base + block.size_bytes) return device::MemoryKind::shared;
    }
    return device::MemoryKind::host;
  }

 private:
  struct Block {
    std::unique_ptr<std::byte[]> memory;
    std::size_t size_bytes = 0;
  };
  std::map<const std::byte*, Block> blocks_;
  bool is_shared_;
};

/// Engines of N ranks on one simulated cluster, stepped by hand in one thread.
class SimGroup {
 public:
  explicit SimGroup(const transport::sim::SimOptions& options, std::uint64_t slice_bytes = 512,
                    std::uint32_t in_flight = 3)
      : cluster_(options) {
    cluster_.connect_all();
    for (std::uint32_t r = 0; r < options.ranks; ++r) {
      memories_.push_back(std::make_unique<SimMemory>(options.link.maps_shared_memory));
      collectives::engine::Engine::Options engine;
      engine.own_rank = Rank{r};
      engine.transports = {&cluster_.transport(Rank{r})};
      for (std::uint32_t peer = 0; peer < options.ranks; ++peer) {
        transport::Endpoint* endpoint = peer == r ? nullptr : cluster_.transport(Rank{r}).endpoint(Rank{peer});
        engine.links.push_back({endpoint, 0, "rank " + std::to_string(peer)});
      }
      engine.memory = memories_.back().get();
      engine.slicing = {slice_bytes, in_flight};
      engine.clock = &cluster_.clock();
      engines_.push_back(std::make_unique<collectives::engine::Engine>(std::move(engine)));
    }
  }

  collectives::engine::Engine& engine(std::uint32_t rank) { return *engines_[rank]; }
  SimMemory& memory(std::uint32_t rank) { return *memories_[rank]; }
  transport::sim::SimCluster& cluster() { return cluster_; }
  [[nodiscard]] std::uint32_t ranks() const { return static_cast<std::uint32_t>(engines_.size()); }

  /// Lets ranks progress and time pass until `is_done`, or until nothing can happen any more.
  bool run_until(const std::function<bool()>& is_done) {
    // A link may answer `again` for no reason, so that idle rounds prove a standstill only many in a row.
    constexpr int kStandstill = 100;
    for (int idle = 0; idle < kStandstill; ++idle) {
      if (is_done()) return true;
      bool worked = false;
      for (auto& engine : engines_) worked = engine->progress() || worked;
      if (worked || cluster_.step()) idle = 0;
    }
    return is_done();
  }

  /// The program of `rank` for a call by the named algorithm; kept for the life of the group.
  const collectives::engine::Program& program(const std::string& algorithm, const collectives::engine::Call& call,
                                              const collectives::Shape& shape, std::uint32_t rank) {
    const auto* found = collectives::algorithms::find_algorithm(algorithm);
    auto plan = found->make_plan({call.contract, shape, Rank{rank}});
    auto lowered = collectives::engine::lower(*plan, std::hash<std::string>{}(algorithm), call, Rank{rank},
                                              engines_[rank]->slicing());
    return *programs_.emplace_back(std::move(*lowered));
  }

  /// One half of a send/receive pair.
  const collectives::engine::Program& pair_program(const collectives::engine::Call& call,
                                                   collectives::plan::StepKind kind, std::uint32_t rank,
                                                   std::uint32_t peer) {
    return *programs_.emplace_back(
        collectives::engine::point_to_point_program(call, kind, Rank{peer}, engines_[rank]->slicing()));
  }

 private:
  transport::sim::SimCluster cluster_;
  std::vector<std::unique_ptr<SimMemory>> memories_;
  std::vector<std::unique_ptr<collectives::engine::Program>> programs_;
  std::vector<std::unique_ptr<collectives::engine::Engine>> engines_;
};

}  // namespace weft::test
