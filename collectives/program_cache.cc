#include "collectives/program_cache.h"

#include <algorithm>
#include <string_view>

namespace weft::collectives {
namespace {

/// Equal on all ranks for algorithms of one name: builds of one version make equal plans of equal requests.
std::uint64_t hash_of_name(std::string_view name) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

select::Machine sliced(select::Machine machine, plan::SlicingLimits limits) noexcept {
  machine.slicing = limits;
  return machine;
}

constexpr std::uint64_t kOwnPlan = std::uint64_t{1} << 63;
constexpr std::uint64_t kPointToPoint = std::uint64_t{1} << 62;

}  // namespace

ProgramCache::ProgramCache(Rank own, Shape shape, select::Machine machine, select::AlgorithmSetting setting,
                           plan::SlicingLimits limits)
    : own_(own),
      shape_(shape),
      selector_(std::move(shape), sliced(machine, limits), std::move(setting)),
      limits_(limits) {}

std::size_t ProgramCache::KeyHash::operator()(const Key& key) const noexcept {
  const engine::CallWire wire = key.call.to_wire(key.discriminator);
  std::uint64_t hash = static_cast<std::uint64_t>(key.call.contract.placement);
  for (const std::uint64_t word : {std::uint64_t{wire.collective} << 40 | std::uint64_t{wire.type} << 32 | wire.root,
                                   std::uint64_t{wire.op}, wire.count, wire.plan}) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 32;
  }
  return hash;
}

Result<const select::Choice*> ProgramCache::choice(const Contract& contract, device::DataType type,
                                                   std::uint64_t count) {
  // Placement is each rank's own affair, the algorithm is not: choose as if all were out of place.
  Contract common = contract;
  common.placement = Placement::out_of_place;
  return selector_.choose(common, static_cast<std::uint32_t>(device::size_of(type)), count);
}

Result<const engine::Program*> ProgramCache::collective(const engine::Call& call) {
  if (last_ != nullptr && last_->call == call) return last_;
  const Key key{call, 0};
  if (const auto found = programs_.find(key); found != programs_.end()) return last_ = found->second.get();
  WEFT_TRY_ASSIGN(const select::Choice* chosen, choice(call.contract, call.type, call.count));
  WEFT_TRY_ASSIGN(const plan::Plan plan, chosen->algorithm->make_plan({call.contract, shape_, own_}));
  WEFT_TRY_ASSIGN(auto program, engine::lower(plan, hash_of_name(chosen->algorithm->name), call, own_, limits_));
  last_ = program.get();
  programs_.emplace(key, std::move(program));
  return last_;
}

const engine::Program& ProgramCache::point_to_point(const engine::Call& call, plan::StepKind kind, Rank peer) {
  const Key key{call, kPointToPoint | std::uint64_t{kind == plan::StepKind::send} << 32 | peer.value()};
  std::unique_ptr<engine::Program>& program = programs_[key];
  if (!program) program = engine::point_to_point_program(call, kind, peer, limits_);
  return *program;
}

Result<const engine::Program*> ProgramCache::own_plan(const plan::Plan& plan, const engine::Call& call) {
  const std::uint64_t hash = plan::hash_of(plan);
  const Key key{call, kOwnPlan | hash};
  if (const auto found = programs_.find(key); found != programs_.end()) return found->second.get();
  WEFT_TRY_ASSIGN(auto program, engine::lower(plan, hash, call, own_, limits_));
  return programs_.emplace(key, std::move(program)).first->second.get();
}

void ProgramCache::trim(const std::function<bool(const engine::Program&)>& is_needed) {
  std::erase_if(programs_, [&](const auto& entry) { return !is_needed(*entry.second); });
  limit_ = std::max(kProgramsMax, 2 * programs_.size());
  last_ = nullptr;
}

}  // namespace weft::collectives
