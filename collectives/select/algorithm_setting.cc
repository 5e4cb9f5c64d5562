#include "collectives/select/algorithm_setting.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace weft::collectives::select {
namespace {

using algorithms::Algorithm;
using algorithms::Request;

std::string_view trimmed(std::string_view text) noexcept {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// Two hosts of two ranks: whatever an algorithm plans anywhere, it plans here.
Request probe(Collective collective) {
  constexpr std::array<std::uint32_t, 4> kHosts{0, 0, 1, 1};
  return {.contract = {.collective = collective, .ranks = RankCount{4}}, .shape = Shape::of_hosts(kHosts), .focus = {}};
}

std::string names_of_all() {
  std::string names = "auto";
  for (const Algorithm& algorithm : algorithms::all_algorithms()) names += fmt::format(", {}", algorithm.name);
  return names;
}

std::string names_of_collectives() {
  std::string names;
  for (std::size_t i = 0; i < kCollectives; ++i) {
    names += fmt::format("{}{}", i == 0 ? "" : ", ", name_of(static_cast<Collective>(i)));
  }
  return names;
}

Error malformed(std::string_view text, std::string doing, std::string remedy) {
  return {ErrorCode::malformed, fmt::format("read the algorithm setting \"{}\": {}", text.substr(0, 64), doing),
          std::move(remedy)};
}

}  // namespace

std::string names_that_can_plan(const Request& request) {
  std::string names;
  for (const Algorithm& algorithm : algorithms::all_algorithms()) {
    if (algorithm.can_plan(request)) names += fmt::format("{}{}", names.empty() ? "" : ", ", algorithm.name);
  }
  return names;
}

Result<AlgorithmSetting> AlgorithmSetting::parse(std::string_view text) {
  AlgorithmSetting setting;
  if (trimmed(text).empty()) return setting;

  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = trimmed(rest.substr(0, comma));
    const bool is_last = comma == std::string_view::npos;
    rest = is_last ? std::string_view{} : rest.substr(comma + 1);
    if (!is_last && trimmed(rest).empty()) return malformed(text, "an item is empty", "Remove the comma at the end");

    const std::size_t equals = item.find('=');
    const std::string_view name = trimmed(equals == std::string_view::npos ? item : item.substr(equals + 1));
    const Algorithm* algorithm = algorithms::find_algorithm(name);
    if (algorithm == nullptr && name != "auto") {
      return malformed(text, fmt::format("no algorithm is named \"{}\"", name),
                       fmt::format("Use one of {}", names_of_all()));
    }
    Entry* entry = &setting.wish_;
    if (equals != std::string_view::npos) {
      const std::string_view key = trimmed(item.substr(0, equals));
      const std::optional<Collective> collective = parse_collective(key);
      if (!collective) {
        return malformed(text, fmt::format("no collective is named \"{}\"", key),
                         fmt::format("Use one of {}", names_of_collectives()));
      }
      if (algorithm != nullptr && !algorithm->can_plan(probe(*collective))) {
        return malformed(text, fmt::format("{} never plans {}", name, key),
                         fmt::format("Use one of auto, {}", names_that_can_plan(probe(*collective))));
      }
      entry = &setting.orders_[static_cast<std::size_t>(*collective)];
    }
    if (*entry) return malformed(text, fmt::format("\"{}\" sets something a second time", item), "Keep one of the two");
    *entry = algorithm;
  }
  return setting;
}

}  // namespace weft::collectives::select
