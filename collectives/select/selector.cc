#include "collectives/select/selector.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/units.h"
#include "collectives/select/predict.h"

namespace weft::collectives::select {
namespace {

using algorithms::Algorithm;
using algorithms::Request;

/// Sizes with the same number of bits share a choice; zero bytes are a class of their own.
std::uint32_t size_class_of(std::uint64_t bytes) noexcept { return static_cast<std::uint32_t>(std::bit_width(bytes)); }

/// The middle of a class.
std::uint64_t typical_bytes(std::uint32_t size_class) noexcept {
  if (size_class == 0) return 0;
  const std::uint64_t smallest = std::uint64_t{1} << (size_class - 1);
  return smallest + smallest / 2;
}

std::string describe(const Request& request, std::uint64_t block_bytes) {
  return fmt::format("{} of about {} on {} ranks and {} host{}", name_of(request.contract.collective),
                     format_bytes(block_bytes), request.shape.ranks().value(), request.shape.num_hosts(),
                     request.shape.num_hosts() == 1 ? "" : "s");
}

}  // namespace

Selector::Selector(Shape shape, Machine machine, AlgorithmSetting setting)
    : shape_(std::move(shape)), machine_(machine), setting_(setting) {}

Result<const Choice*> Selector::choose(const Contract& contract, std::uint32_t type_bytes, std::uint64_t count) {
  WEFT_CHECK(contract.ranks == shape_.ranks(), "a selector is asked about its own group only");
  // A product beyond 2^62 is refused elsewhere; here it only has to stay in the largest class.
  constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 62;
  const std::uint64_t size = std::max(type_bytes, 1U);
  const std::uint64_t bytes = type_bytes == 0 ? 0 : std::min(count, kMaxBytes / size) * size;
  const std::uint32_t size_class = size_class_of(bytes);
  const Key key{contract.collective, contract.placement, size_class, type_bytes};
  if (const auto known = memo_.find(key); known != memo_.end()) return &known->second;

  Request request{.contract = contract, .shape = shape_, .focus = {}};
  request.contract.root = Rank{0};
  const std::uint64_t typical_count = bytes == 0 ? 0 : std::max<std::uint64_t>(typical_bytes(size_class) / size, 1);
  WEFT_TRY_ASSIGN(Choice choice, make_choice(request, type_bytes, typical_count));
  return &memo_.emplace(key, std::move(choice)).first->second;
}

Result<Choice> Selector::make_choice(const Request& request, std::uint32_t type_bytes, std::uint64_t count) const {
  const std::uint64_t block_bytes = count * type_bytes;
  const Collective collective = request.contract.collective;
  const Algorithm* ordered = setting_.ordered(collective);
  if (ordered != nullptr && !ordered->can_plan(request)) {
    return Error{
        ErrorCode::unsupported,
        fmt::format("plan {} with {}, as WEFT_ALGORITHM orders", describe(request, block_bytes), ordered->name),
        fmt::format("Set it to auto or one of {}", names_that_can_plan(request))};
  }

  Choice choice{};
  for (const Algorithm& algorithm : algorithms::all_algorithms()) {
    if (!algorithm.can_plan(request)) continue;
    WEFT_TRY_ASSIGN(const Nanos predicted, predict(algorithm, request, count, type_bytes, machine_));
    choice.candidates.push_back({&algorithm, predicted});
  }
  if (choice.candidates.empty()) {
    return Error{ErrorCode::unsupported, fmt::format("plan {}: no algorithm can", describe(request, block_bytes))};
  }
  std::ranges::stable_sort(choice.candidates, {}, &Candidate::predicted);

  const Algorithm* wished = setting_.wished(collective);
  const Candidate& fastest = choice.candidates.front();
  choice.algorithm = fastest.algorithm;
  choice.reason = fmt::format("predicted to be the fastest of {} for {}: {}", choice.candidates.size(),
                              describe(request, block_bytes), format_duration(fastest.predicted));
  if (ordered != nullptr || (wished != nullptr && wished->can_plan(request))) {
    choice.algorithm = ordered != nullptr ? ordered : wished;
    choice.reason = "set by WEFT_ALGORITHM";
  } else if (wished != nullptr) {
    choice.reason += fmt::format(" ({}, which WEFT_ALGORITHM names, cannot plan it)", wished->name);
  }
  return choice;
}

}  // namespace weft::collectives::select
