#include "bootstrap/meeting.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/log.h"
#include "base/units.h"
#include "bootstrap/meeting_exchange.h"
#include "bootstrap/rank_list.h"

namespace weft::bootstrap {
namespace {

constexpr std::size_t kRefusalsKept = 4;
/// How many ranks a message describes with host and pid; the rest are named by number.
constexpr std::size_t kDescribedMax = 16;

}  // namespace

Meeting::Meeting(Options options, const Clock& clock)
    : clock_(clock),
      options_(std::move(options)),
      started_at_(clock.now()),
      join_deadline_(options_.join_deadline),
      slots_(options_.size) {
  WEFT_CHECK(options_.size >= 1, "a job has at least one rank");
}

Meeting::~Meeting() = default;

std::string Meeting::describe(Rank rank) const {
  const Slot& slot = slots_[rank.index()];
  if (slot.presence == Presence::absent) return fmt::format("rank {}", rank.value());
  return fmt::format("rank {} (host {}, pid {})", rank.value(), slot.host, slot.pid);
}

std::string Meeting::describe_some(const std::vector<Rank>& ranks) const {
  if (ranks.empty()) return "nobody";
  std::string text;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i == kDescribedMax) {
      const std::span rest = std::span(ranks).subspan(i);
      return text + " and " + describe_ranks(rest);
    }
    if (i > 0) text += ", ";
    text += describe(ranks[i]);
  }
  return text;
}

void Meeting::send(ConnectionId to, const ServiceMessage& message, Outgoing::Then then) {
  output_.push_back({to, std::make_shared<const std::vector<std::byte>>(encode(message)), then});
}

std::vector<Outgoing> Meeting::take_output() { return std::exchange(output_, {}); }

std::optional<Error> Meeting::find_join_mistake(const JoinMessage& message) const {
  const std::string who = fmt::format("rank {} (host {}, pid {})", message.rank.value(), message.host, message.pid);
  if (message.size != options_.size) {
    const auto known = std::ranges::find_if(slots_, [](const Slot& slot) { return slot.presence != Presence::absent; });
    const std::string others = known == slots_.end()
                                   ? fmt::format("the service at {}", options_.address)
                                   : describe(Rank{static_cast<std::uint32_t>(known - slots_.begin())});
    return Error{
        ErrorCode::mismatch,
        fmt::format("{} says that the job has {} ranks, but {} says {}", who, message.size, others, options_.size),
        "Start every rank with the same size, and every job with an address and a secret of its own"};
  }
  if (message.rank.value() >= options_.size) {
    return Error{ErrorCode::mismatch, fmt::format("{} is not in a job of {} ranks", who, options_.size)};
  }
  if (slots_[message.rank.index()].presence != Presence::absent) {
    return Error{
        ErrorCode::mismatch,
        fmt::format("rank {} is taken by {}; {} wants it too", message.rank.value(), describe(message.rank), who),
        "Give every process a rank of its own, and every job an address and a secret of its own"}
        .about(message.rank);
  }
  return join_failure_;
}

void Meeting::join(ConnectionId from, const JoinMessage& message) {
  WEFT_CHECK(!ranks_.contains(from), "a connection joins once");
  if (const auto mistake = find_join_mistake(message)) {
    log::info("bootstrap: refused: {}", mistake->doing());
    refusals_.push_back(mistake->doing());
    if (refusals_.size() > kRefusalsKept) refusals_.pop_front();
    send(from, RefusedMessage{*mistake}, Outgoing::Then::close);
    return;
  }
  slots_[message.rank.index()] = {Presence::here, from, message.host, message.pid, {}};
  ranks_[from] = message.rank;
  send(from, AcceptedMessage{});
  const Deadline own = deadline_of(message.timeout_ns, clock_);
  if (own.at() < join_deadline_.at()) join_deadline_ = own;
  if (++num_joined_ < options_.size) return;
  is_complete_ = true;
  const auto welcome = std::make_shared<const std::vector<std::byte>>(encode(WelcomeMessage{options_.size}));
  for (const Slot& slot : slots_) output_.push_back({slot.connection, welcome, Outgoing::Then::stay});
}

Error Meeting::join_timeout_error() const {
  std::vector<Rank> here;
  std::vector<Rank> missing;
  for (std::uint32_t i = 0; i < options_.size; ++i) {
    (slots_[i].presence == Presence::here ? here : missing).emplace_back(i);
  }
  std::string doing = fmt::format("waited {} at {} for all {} ranks of the job: missing {}; joined: {}",
                                  format_duration(clock_.now() - started_at_), options_.address, options_.size,
                                  describe_ranks(missing), describe_some(here));
  for (const std::string& refusal : refusals_) doing += "; refused meanwhile: " + refusal;
  std::string remedy =
      "Check that the missing ranks were started and reach this address, or raise WEFT_BOOTSTRAP_TIMEOUT";
  if (num_strangers_ > 0) {
    doing += num_strangers_ == 1 ? std::string("; 1 connection was refused because it did not prove this job's secret")
                                 : fmt::format(
                                       "; {} connections were refused because they did not prove this job's "
                                       "secret",
                                       num_strangers_);
    remedy =
        "Check that the missing ranks were started, reach this address and have the same WEFT_SECRET, or raise "
        "WEFT_BOOTSTRAP_TIMEOUT";
  }
  return Error{ErrorCode::timeout, std::move(doing), std::move(remedy)}.about(missing.empty() ? Rank{}
                                                                                              : missing.front());
}

void Meeting::fail_join(const Error& cause) {
  join_failure_ = cause;
  for (const auto& [connection, rank] : ranks_) {
    if (slots_[rank.index()].presence == Presence::here) {
      send(connection, RefusedMessage{cause}, Outgoing::Then::close);
    }
  }
}

void Meeting::depart(Rank rank, Presence how, const std::string& why) {
  Slot& slot = slots_[rank.index()];
  ranks_.erase(slot.connection);
  slot.presence = how;
  slot.why_gone = why;
  ++num_gone_;
  if (!is_complete_ && !join_failure_) {
    fail_join(Error{ErrorCode::peer_failed,
                    fmt::format("{} {} before all {} ranks had joined", describe(rank), why, options_.size)}
                  .about(rank));
  }
  // Failing an exchange may remove it, so the walk is over a copy of the pointers.
  std::vector<std::shared_ptr<Exchange>> affected;
  for (const auto& [key, exchange] : exchanges_) {
    if (exchange->has_member(rank)) affected.push_back(exchange);
  }
  for (const auto& exchange : affected) {
    const bool keeps_its_part = how == Presence::left && exchange->has_contributed(rank);
    if (!exchange->failure && !keeps_its_part) fail(*exchange, gone_error(*exchange, rank));
    forget_settled(*exchange);
  }
}

void Meeting::leave(ConnectionId from) {
  const auto found = ranks_.find(from);
  if (found != ranks_.end()) depart(found->second, Presence::left, "left the job");
}

void Meeting::drop(ConnectionId from, const std::string& why) {
  const auto found = ranks_.find(from);
  if (found == ranks_.end()) return;
  const Rank rank = found->second;
  if (join_failure_) {
    // It was told that the job does not come about, and went: no event of its own.
    depart(rank, Presence::left, "left the job");
    return;
  }
  const std::string text = fmt::format("lost its connection to the service at {} ({})", options_.address, why);
  if (!first_drop_) {
    first_drop_ = Error{ErrorCode::peer_failed, fmt::format("{} {}", describe(rank), text)}.about(rank);
  }
  depart(rank, Presence::dropped, text);
}

Deadline Meeting::next_deadline() const {
  Deadline next = is_complete_ || join_failure_ ? Deadline::never() : join_deadline_;
  for (const auto& [key, exchange] : exchanges_) {
    if (!exchange->failure && exchange->deadline.at() < next.at()) next = exchange->deadline;
  }
  return next;
}

void Meeting::tick() {
  if (!is_complete_ && !join_failure_ && join_deadline_.has_passed(clock_)) fail_join(join_timeout_error());
  std::vector<std::shared_ptr<Exchange>> late;
  for (const auto& [key, exchange] : exchanges_) {
    if (!exchange->failure && exchange->deadline.has_passed(clock_)) late.push_back(exchange);
  }
  for (const auto& exchange : late) {
    fail(*exchange, exchange_timeout_error(*exchange));
    forget_settled(*exchange);
  }
}

void Meeting::close() {
  for (const auto& [connection, rank] : ranks_) send(connection, ClosingMessage{}, Outgoing::Then::close);
}

bool Meeting::is_done() const noexcept {
  return join_failure_.has_value() || (is_complete_ && num_gone_ == options_.size);
}

Status Meeting::outcome() const {
  if (join_failure_) return *join_failure_;
  if (first_drop_) return *first_drop_;
  if (!is_complete_) return join_timeout_error();
  if (num_gone_ == options_.size) return {};
  std::vector<Rank> here;
  for (const auto& [connection, rank] : ranks_) here.push_back(rank);
  std::ranges::sort(here);
  return Error{ErrorCode::timeout, fmt::format("the job at {} still has {}", options_.address, describe_some(here))};
}

}  // namespace weft::bootstrap
