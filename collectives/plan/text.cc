#include "collectives/plan/text.h"

#include <fmt/format.h>

#include <iterator>

namespace weft::collectives::plan {
namespace {

void append_location(std::string& text, const Plan& plan, std::size_t rank, const Location& location) {
  fmt::format_to(std::back_inserter(text), " {}[{}.{}]", name_of(location.buffer),
                 location.chunk / plan.parts_per_block, location.chunk % plan.parts_per_block);
  // Only in plans that are wrong, but those are the ones that one wants to see.
  if (location.rank.index() != rank) fmt::format_to(std::back_inserter(text), "@{}", location.rank.value());
}

void append_step(std::string& text, const Plan& plan, std::size_t rank, const Step& step) {
  text += name_of(step.kind);
  if (is_transfer(step.kind)) fmt::format_to(std::back_inserter(text), " t{}", step.transfer);
  append_location(text, plan, rank, step.kind == StepKind::send ? step.source : step.destination);
  switch (step.kind) {
    case StepKind::send: text += " to "; break;
    case StepKind::receive: text += " from "; break;
    case StepKind::receive_reduce:
      text += " =";
      append_location(text, plan, rank, step.source);
      text += " op from ";
      break;
    case StepKind::copy:
      text += " =";
      append_location(text, plan, rank, step.source);
      break;
    case StepKind::reduce:
      text += " =";
      append_location(text, plan, rank, step.source);
      text += " op";
      append_location(text, plan, rank, step.second);
      break;
  }
  if (is_transfer(step.kind)) {
    text += std::to_string(step.peer.value());
    if (step.lane != 0) fmt::format_to(std::back_inserter(text), " lane {}", step.lane);
  }
  if (!step.after.empty()) text += " after";
  for (const std::uint32_t before : step.after) fmt::format_to(std::back_inserter(text), " {}", before);
}

/// A name as the parser will read it back.
std::string printable(std::string_view name) {
  std::string result;
  for (const char c : name) {
    const bool is_blank = static_cast<unsigned char>(c) <= ' ' || c == 0x7f;
    if (!is_blank) result += c;
    if (is_blank && !result.empty() && result.back() != ' ') result += ' ';
  }
  if (!result.empty() && result.back() == ' ') result.pop_back();
  return result;
}

}  // namespace

std::string to_text(const Plan& plan) {
  const Contract& contract = plan.contract;
  std::string text = fmt::format(
      "weft-plan 1\nname {}\ncollective {}\nranks {}\nroot {}\nplacement {}\nparts {}\nlanes {}\ntransfers {}\n",
      printable(plan.name), name_of(contract.collective), contract.ranks.value(), contract.root.value(),
      contract.placement == Placement::in_place ? "in_place" : "out_of_place", plan.parts_per_block, plan.lanes,
      plan.num_transfers);
  for (std::size_t rank = 0; rank < plan.steps.size(); ++rank) {
    fmt::format_to(std::back_inserter(text), "rank {} scratch {}\n", rank, plan.scratch_chunks[rank]);
    for (std::size_t position = 0; position < plan.steps[rank].size(); ++position) {
      fmt::format_to(std::back_inserter(text), "  {} ", position);
      append_step(text, plan, rank, plan.steps[rank][position]);
      text += '\n';
    }
  }
  return text;
}

}  // namespace weft::collectives::plan
