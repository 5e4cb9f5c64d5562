// What the bench says before it measures: its output alone must tell what was measured.
#include <algorithm>
#include <cstdlib>
#include <map>

#include <fmt/format.h>

#include "base/settings.h"
#include "base/units.h"
#include "bootstrap/launchers.h"
#include "collectives/select/selector.h"
#include "tools/bench/context.h"
#include "tools/bench/statistics.h"
#include "tools/machine/machine.h"

namespace weft::tools {
namespace {

constexpr std::uint32_t kRanksListed = 64;

std::optional<std::string> environment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>{value};
}

void say_ranks(BenchContext& context) {
  const Description& description = context.description;
  context.say("# ranks {} on {} {}, joined by {}", context.ranks, description.hosts,
              description.hosts == 1 ? "host" : "hosts",
              description.identity.empty() ? "nothing" : description.identity);
  std::map<std::uint32_t, ReportHost> hosts;
  for (std::uint32_t rank = 0; rank < context.ranks; ++rank) {
    const Description::Peer& peer = description.peers[rank];
    hosts[peer.host_index].name = peer.host;
    hosts[peer.host_index].ranks.push_back(rank);
    if (rank < kRanksListed) context.say("#   rank {} pid {} host {} ({})", rank, peer.pid, peer.host_index, peer.host);
  }
  if (context.ranks > kRanksListed) context.say("#   and {} more", context.ranks - kRanksListed);
  for (auto& [index, host] : hosts) context.report.hosts.push_back(std::move(host));
  context.say("# waiting: {}", description.waiting);
}

Status say_transports(BenchContext& context) {
  // Every rank's view of every other one: with many ranks, more than anybody reads.
  if (context.ranks > kRanksListed || context.ranks < 2) return {};
  WEFT_TRY_ASSIGN(const std::vector<Pair> pairs, gather_pairs(context.communicator, context.description));
  std::map<std::pair<std::string, std::string>, std::string> kinds;
  for (const Pair& pair : pairs) {
    context.report.pairs.push_back({pair.from, pair.to, pair.transport, pair.not_taken});
    if (pair.from < pair.to) kinds[{pair.transport, pair.not_taken}] += fmt::format(" {}-{}", pair.from, pair.to);
  }
  for (const auto& [kind, members] : kinds) {
    context.say("# transport {}:{}{}", kind.first, members,
                kind.second.empty() ? "" : " (not taken: " + kind.second + ")");
  }
  for (std::uint32_t peer = 1; peer < std::min(context.ranks, 8U); ++peer) {
    context.say("#   link 0-{}: {}", peer, context.description.peers[peer].link);
  }
  return {};
}

void say_method(BenchContext& context) {
  const BenchOptions& options = context.options;
  context.say(
      "# measured: median and 99th percentile of {} after {} warm-ups; each rank times each call, the time of an",
      options.iterations > 0 ? fmt::format("{} iterations", options.iterations)
                             : fmt::format("the iterations that fit {} (5 to 20000)", format_duration(options.budget)),
      options.warm_ups);
  context.say("#   iteration is the longest over the ranks; no barrier in between. Memory: {}. Results {}.",
              options.memory == Memory::plain ? "plain" : "of weft_memory_allocate",
              options.is_checked ? "checked exactly before and after" : "not checked");
}

}  // namespace

Status say_header(BenchContext& context) {
  Report& report = context.report;
  report.machine = machine_facts();
  std::string machine;
  for (const Fact& fact : report.machine) {
    if (fact.name == "processor" || fact.name == "cores" || fact.name == "kernel" || fact.name == "reduction kernels") {
      machine += fmt::format("{}{}: {}", machine.empty() ? "" : "; ", fact.name, fact.value);
    }
  }
  context.say("# weft bench, commit {}, {}", report.commit, report.started_at);
  context.say("# {}", machine);
  say_ranks(context);
  if (context.ranks == 1) {
    if (const auto contradiction = bootstrap::find_contradiction(environment)) {
      const std::string note = "world size 1 although launched as " + *contradiction;
      context.say("# WARNING: {}: every rank measures itself; set WEFT_ADDRESS and WEFT_SECRET, or use weft run", note);
      report.notes.push_back(note);
    } else {
      context.say("# one rank: nothing crosses a link, busbw has no meaning (-N 2 starts two)");
    }
  }
  WEFT_TRY(say_transports(context));
  if (!context.description.changed_settings.empty()) {
    context.say("# settings: {}", fmt::join(context.description.changed_settings, " "));
    report.notes.push_back(fmt::format("settings: {}", fmt::join(context.description.changed_settings, " ")));
  }
  say_method(context);
  return {};
}

void say_algorithms(BenchContext& context, collectives::Collective collective) {
  if (context.rank != 0 || context.ranks < 2) return;
  const auto settings = Settings::from_environment();
  if (!settings) return;
  auto setting = collectives::select::AlgorithmSetting::parse(settings->text(Setting::algorithm));
  if (!setting) return;
  collectives::select::Selector selector{
      context.description.shape(), {.cores_per_host = context.description.cores_per_host}, std::move(*setting)};
  const BenchOptions& options = context.options;
  const std::uint64_t type_bytes = device::size_of(options.type);
  const collectives::Contract contract{collective, RankCount{context.ranks},
                                       Rank{has_root(collective) ? options.root : 0},
                                       collectives::Placement::out_of_place};
  std::vector<AlgorithmChoice>& choices = context.report.algorithms;
  const std::size_t first_own = choices.size();
  for (const std::uint64_t size : sizes_of(options)) {
    const std::uint64_t count = block_count(collective, size, type_bytes, context.ranks);
    const auto choice = selector.choose(contract, static_cast<std::uint32_t>(type_bytes), count);
    if (!choice) return;
    const std::string name{(*choice)->algorithm->name};
    const std::uint64_t bytes = message_bytes(collective, count, type_bytes, context.ranks);
    if (choices.size() > first_own && choices.back().algorithm == name) {
      choices.back().last_bytes = bytes;
    } else {
      choices.push_back({std::string{name_of(collective)}, bytes, bytes, name, (*choice)->reason});
    }
    if (collective == collectives::Collective::barrier) break;
  }
  for (std::size_t i = first_own; i < choices.size(); ++i) {
    const AlgorithmChoice& choice = choices[i];
    context.say("# algorithm {}, {} to {} bytes: {} ({})", choice.collective, choice.first_bytes, choice.last_bytes,
                choice.algorithm, choice.reason);
  }
}

}  // namespace weft::tools
