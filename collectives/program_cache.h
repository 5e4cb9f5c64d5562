#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "collectives/engine/program.h"
#include "collectives/select/selector.h"
#include "collectives/shape.h"

namespace weft::collectives {

/// Programs of one communicator, made on first use: a repeated call finds its own by comparing a few words.
/// Thread: loop.
class ProgramCache {
 public:
  ProgramCache(Rank own, Shape shape, select::Machine machine, select::AlgorithmSetting setting,
               plan::SlicingLimits limits);

  /// The program for a collective call; stays valid until a trim() that may forget it.
  /// Errors: unsupported — WEFT_ALGORITHM orders one that cannot plan this.
  Result<const engine::Program*> collective(const engine::Call& call);
  /// The program for one half of a send/receive pair.
  const engine::Program& point_to_point(const engine::Call& call, plan::StepKind kind, Rank peer);
  /// The program for the caller's own, complete and verified plan.
  Result<const engine::Program*> own_plan(const plan::Plan& plan, const engine::Call& call);

  /// Which algorithm a call gets, and why.
  Result<const select::Choice*> choice(const Contract& contract, device::DataType type, std::uint64_t count);

  /// True when so many programs are kept that trim() is due.
  [[nodiscard]] bool is_full() const noexcept { return programs_.size() >= limit_; }
  [[nodiscard]] std::size_t size() const noexcept { return programs_.size(); }
  /// Forgets all programs but those that are still needed.
  void trim(const std::function<bool(const engine::Program&)>& is_needed);

 private:
  /// After a trim that kept many, so that not every call trims: then, twice what was kept.
  static constexpr std::size_t kProgramsMax = 1024;
  struct Key {
    engine::Call call;
    std::uint64_t discriminator = 0;  ///< Own plans: their hash; point to point: direction and peer.
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept;
  };

  Rank own_;
  Shape shape_;
  select::Selector selector_;
  plan::SlicingLimits limits_;
  std::unordered_map<Key, std::unique_ptr<engine::Program>, KeyHash> programs_;
  std::size_t limit_ = kProgramsMax;
  const engine::Program* last_ = nullptr;  ///< The latest collective's: loops call the same again.
};

}  // namespace weft::collectives
