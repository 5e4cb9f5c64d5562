#include <cerrno>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/text.h"
#include "collectives/algorithms/algorithm.h"
#include "collectives/plan/draw.h"
#include "collectives/plan/text.h"
#include "collectives/plan/verify.h"
#include "tools/commands.h"
#include "tools/read_file.h"
#include "tools/run/placement.h"

namespace weft::tools {
namespace {

using collectives::Collective;
using collectives::plan::Plan;

struct Arguments {
  std::string what;  ///< A collective, or a file that holds a plan.
  std::string algorithm;
  std::uint32_t ranks = 4;
  std::uint32_t hosts = 1;
  std::uint32_t root = 0;
  bool is_in_place = false;
  std::string output = "plan.svg";
};

Result<Plan> read_plan(const std::string& path) {
  const auto text = read_file(path, "plan");
  if (!text && text.error().code() == ErrorCode::not_found)
    return Error{ErrorCode::not_found, in_quotes(path, 256) + " is neither a collective nor a file that can be read"};
  if (!text) return text.error();
  auto plan = collectives::plan::parse_plan(*text);
  if (!plan) return plan.error().within(path);
  return plan;
}

std::string names_for(const collectives::algorithms::Request& request) {
  std::string names;
  for (const auto& algorithm : collectives::algorithms::all_algorithms()) {
    if (algorithm.can_plan(request)) names += fmt::format("{}{}", names.empty() ? "" : ", ", algorithm.name);
  }
  return fmt::format("these can: {}", names.empty() ? "none" : names);
}

Result<Plan> plan_of(const Arguments& a) {
  const auto collective = collectives::parse_collective(a.what);
  if (!collective) return read_plan(a.what);
  const auto refuse = [](std::string why, std::string remedy = {}) {
    return Error{ErrorCode::invalid_argument, std::move(why), std::move(remedy)};
  };
  if (a.hosts < 1 || a.hosts > a.ranks) return refuse(fmt::format("{} hosts for {} ranks", a.hosts, a.ranks));
  if (a.root >= a.ranks) return refuse(fmt::format("root {} of {} ranks", a.root, a.ranks));
  std::vector<std::uint32_t> host_of_rank;
  for (const Place& place : place_ranks(a.ranks, a.hosts)) host_of_rank.push_back(place.host);
  const collectives::algorithms::Request request{
      {*collective, RankCount{a.ranks}, Rank{has_root(*collective) ? a.root : 0},
       a.is_in_place ? collectives::Placement::in_place : collectives::Placement::out_of_place},
      collectives::Shape::of_hosts(host_of_rank),
      std::nullopt};
  if (a.algorithm.empty()) return refuse("--algorithm is needed", names_for(request));
  const auto* const algorithm = collectives::algorithms::find_algorithm(a.algorithm);
  if (algorithm == nullptr) return refuse("there is no algorithm " + in_quotes(a.algorithm), "weft plan list");
  if (!algorithm->can_plan(request)) return refuse(a.algorithm + " cannot plan this", names_for(request));
  return algorithm->make_plan(request);
}

int list() {
  for (const auto& algorithm : collectives::algorithms::all_algorithms()) {
    std::string plans;
    for (std::uint8_t i = 0; i < collectives::kCollectives; ++i) {
      // Some want a power of two or several hosts: four ranks on two of them suit all.
      const collectives::algorithms::Request request{
          {Collective{i}, RankCount{4}, Rank{0}, collectives::Placement::out_of_place},
          collectives::Shape::of_hosts(std::vector<std::uint32_t>{0, 0, 1, 1}),
          std::nullopt};
      if (algorithm.can_plan(request)) plans += fmt::format("{}{}", plans.empty() ? "" : " ", name_of(Collective{i}));
    }
    fmt::print("{:<20} {}\n{:<20} plans: {}\n", algorithm.name, algorithm.summary, "", plans);
  }
  return kExitOk;
}

int fail(const Error& error, int code) {
  fmt::print(stderr, "weft plan: {}\n", error.message());
  return code;
}

int show(const Plan& plan) {
  fmt::print("{}", to_text(plan));
  return kExitOk;
}

int print_verdict(const Plan& plan) {
  const auto verdict = collectives::plan::verify(plan);
  if (!verdict) {
    fmt::print("WRONG: {}\n", verdict.error().message());
    return kExitWrong;
  }
  fmt::print("RIGHT in every schedule: {} ({}, {} ranks)\n", plan.name, name_of(plan.contract.collective),
             plan.contract.ranks.value());
  fmt::print("  steps {}, transfers {}, {} transfers wait for each other, the busiest rank sends {:.4g} blocks\n",
             verdict->num_steps, verdict->num_transfers, verdict->depth, verdict->max_sent_blocks);
  fmt::print("  bits of an element {} on where it lies in the buffer\n",
             verdict->is_position_independent ? "do not depend" : "depend");
  return kExitOk;
}

int draw(const Plan& plan, const std::string& path) {
  const auto picture = collectives::plan::draw_svg(plan);
  if (!picture) return fail(picture.error(), kExitFailed);
  std::ofstream file{path, std::ios::binary};
  file << *picture;
  file.close();
  if (!file) return fail(Error::from_errno(ErrorCode::system, "writing " + path, errno), kExitFailed);
  fmt::print("{}\n", path);
  return kExitOk;
}

/// A subcommand that works on one plan.
CLI::App* add_one(CLI::App& command, const char* name, const char* summary, const std::shared_ptr<Arguments>& a,
                  Chosen& chosen, std::function<int(const Plan&, const Arguments&)> use) {
  CLI::App* const one = command.add_subcommand(name, summary);
  one->add_option("what", a->what, "A collective, or a file that holds a plan as text")->required();
  one->add_option("--algorithm", a->algorithm, "See weft plan list");
  one->add_option("-n,--ranks", a->ranks, "How many ranks")->check(CLI::Range(1, 4096))->capture_default_str();
  one->add_option("--hosts", a->hosts, "On how many hosts")->capture_default_str();
  one->add_option("--root", a->root, "The root, for collectives that have one")->capture_default_str();
  one->add_flag("--in-place", a->is_in_place, "The plan for an in-place call");
  one->callback([a, &chosen, use = std::move(use)] {
    chosen = [a, use] {
      const auto plan = plan_of(*a);
      return plan ? use(*plan, *a) : fail(plan.error(), kExitUsage);
    };
  });
  return one;
}

}  // namespace

void add_plan(CLI::App& app, Chosen& chosen) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* const command = app.add_subcommand("plan", "Shows, verifies and draws the plans that collectives run");
  command->require_subcommand(1);
  command->add_subcommand("list", "All algorithms and what they plan")->callback([&chosen] { chosen = list; });
  add_one(*command, "show", "Prints a plan as text", arguments, chosen,
          [](const Plan& p, const Arguments&) { return show(p); });
  add_one(*command, "verify", "Proves a plan right in every schedule, or says what is wrong (exit code 1)", arguments,
          chosen, [](const Plan& p, const Arguments&) { return print_verdict(p); });
  add_one(*command, "draw", "Draws a plan as SVG", arguments, chosen,
          [](const Plan& p, const Arguments& a) { return draw(p, a.output); })
      ->add_option("-o,--output", arguments->output, "File")
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  weft plan list\n"
      "  weft plan show all_reduce --algorithm ring -n 4\n"
      "  weft plan verify my_plan.txt\n"
      "  weft plan draw broadcast --algorithm binomial_tree -n 8 -o tree.svg");
}

}  // namespace weft::tools
