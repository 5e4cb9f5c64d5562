#include "bootstrap/meeting_exchange.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"
#include "base/wire.h"
#include "bootstrap/rank_list.h"

namespace weft::bootstrap {

Result<std::shared_ptr<Meeting::Exchange>> Meeting::make_exchange(const ContributeMessage& message) {
  auto exchange = std::make_shared<Exchange>();
  exchange->key = message.key;
  exchange->operation = message.operation;
  exchange->what = message.what;
  exchange->encoded_members = message.members;
  WEFT_TRY_ASSIGN(exchange->members, decode_members(message.members, options_.size));
  exchange->index_of.reserve(exchange->members.size());
  for (const Rank member : exchange->members) {
    const auto index = static_cast<std::uint32_t>(exchange->index_of.size());
    if (member.value() >= options_.size || !exchange->index_of.emplace(member, index).second) {
      return Error{ErrorCode::malformed, "a group names a rank twice, or one that is not in the job"};
    }
  }
  exchange->contributed.resize(exchange->members.size());
  if (message.operation == Operation::all_gather) exchange->values.resize(exchange->members.size());
  exchange->started_at = clock_.now();
  return exchange;
}

std::optional<Error> Meeting::find_mismatch(const Exchange& exchange, Rank rank,
                                            const ContributeMessage& message) const {
  const bool same_call = message.operation == exchange.operation && message.what == exchange.what;
  if (same_call && message.members == exchange.encoded_members) return std::nullopt;
  const std::string detail = same_call
                                 ? "their lists of the group's members differ"
                                 : fmt::format("{} called {} \"{}\", but {} called {} \"{}\"", describe(exchange.first),
                                               name_of(exchange.operation), exchange.what, describe(rank),
                                               name_of(message.operation), message.what);
  return Error{
      ErrorCode::mismatch,
      fmt::format("exchange {} of group {}: {}{}", exchange.key.sequence, exchange.key.group,
                  same_call ? fmt::format("{} and {} disagree: ", describe(exchange.first), describe(rank)) : "",
                  detail),
      "All members of a group make the same calls in the same order"}
      .about(rank);
}

Error Meeting::gone_error(const Exchange& exchange, Rank gone) const {
  return Error{ErrorCode::peer_failed, fmt::format("{} \"{}\": {} {}", name_of(exchange.operation), exchange.what,
                                                   describe(gone), slots_[gone.index()].why_gone)}
      .about(gone);
}

Error Meeting::exchange_timeout_error(const Exchange& exchange) const {
  std::vector<Rank> missing;
  for (std::size_t i = 0; i < exchange.members.size(); ++i) {
    if (!exchange.contributed[i]) missing.push_back(exchange.members[i]);
  }
  std::ranges::sort(missing);
  return Error{ErrorCode::timeout,
               fmt::format("{} \"{}\" of {} ranks waited {} for {}: {}", name_of(exchange.operation), exchange.what,
                           exchange.members.size(), format_duration(clock_.now() - exchange.started_at),
                           describe_ranks(missing), describe_some(missing)),
               "Look at what those processes are doing, or raise the timeout"}
      .about(missing.front());
}

Status Meeting::contribute(ConnectionId from, ContributeMessage message) {
  const auto sender = ranks_.find(from);
  if (sender == ranks_.end()) return {};  // It was refused meanwhile and does not know it yet.
  if (!is_complete_) return Error{ErrorCode::malformed, "a rank contributes before everybody has joined"};
  const Rank rank = sender->second;

  auto found = exchanges_.find(message.key);
  if (found == exchanges_.end()) {
    WEFT_TRY_ASSIGN(auto created, make_exchange(message));
    created->first = rank;
    found = exchanges_.emplace(message.key, std::move(created)).first;
  }
  const std::shared_ptr<Exchange> exchange = found->second;

  if (!exchange->failure) {
    if (const auto mismatch = find_mismatch(*exchange, rank, message)) fail(*exchange, *mismatch);
  }
  const auto own = exchange->index_of.find(rank);
  if (own == exchange->index_of.end()) {
    // Only a mismatch leads here, or a group that its sender is not in.
    if (!exchange->failure) {
      exchanges_.erase(message.key);
      return Error{ErrorCode::malformed, "a rank contributes to a group that it is not in"};
    }
    send(from, FailedMessage{message.key, *exchange->failure});
    forget_settled(*exchange);
    return {};
  }
  if (exchange->contributed[own->second]) return Error{ErrorCode::malformed, "a rank contributes twice"};
  if (!exchange->failure && own->second != message.own_index) {
    return Error{ErrorCode::malformed, "a rank names a wrong place in its group"};
  }

  exchange->contributed[own->second] = true;
  ++exchange->num_contributed;
  if (exchange->failure) {
    send(from, FailedMessage{message.key, *exchange->failure});
    forget_settled(*exchange);
    return {};
  }
  const Deadline deadline = deadline_of(message.timeout_ns, clock_);
  if (deadline.at() < exchange->deadline.at()) exchange->deadline = deadline;
  if (exchange->operation == Operation::agree) {
    std::uint64_t value = 0;
    std::memcpy(&value, message.value.data(), sizeof value);  // Its size was checked when it was decoded.
    exchange->conjunction &= value;
  } else if (exchange->operation == Operation::all_gather) {
    exchange->values[own->second] = std::move(message.value);
  }
  if (exchange->num_contributed == exchange->members.size()) {
    finish(*exchange);
    return {};
  }
  if (exchange->num_contributed == 1 && num_gone_ > 0) {
    // A member that is gone can never come; those that leave later are found in depart().
    for (const Rank member : exchange->members) {
      const Presence presence = slots_[member.index()].presence;
      if (presence != Presence::here) {
        fail(*exchange, gone_error(*exchange, member));
        forget_settled(*exchange);
        break;
      }
    }
  }
  return {};
}

std::shared_ptr<const std::vector<std::byte>> Meeting::result_of(Exchange& exchange) const {
  ByteWriter body;
  if (exchange.operation == Operation::agree) body.number(exchange.conjunction);
  for (auto& value : exchange.values) {
    body.blob(value);
    std::vector<std::byte>().swap(value);  // The root holds what was gathered once, not twice.
  }
  return std::make_shared<const std::vector<std::byte>>(encode(ResultMessage{exchange.key, std::move(body).take()}));
}

void Meeting::finish(Exchange& exchange) {
  const auto result = result_of(exchange);
  for (const Rank member : exchange.members) {
    const Slot& slot = slots_[member.index()];
    if (slot.presence == Presence::here) output_.push_back({slot.connection, result, Outgoing::Then::stay});
  }
  const ExchangeKey key = exchange.key;  // The record dies with the entry.
  exchanges_.erase(key);
}

void Meeting::fail(Exchange& exchange, const Error& cause) {
  exchange.failure = cause;
  exchange.values.clear();
  const auto message = std::make_shared<const std::vector<std::byte>>(encode(FailedMessage{exchange.key, cause}));
  for (std::size_t i = 0; i < exchange.members.size(); ++i) {
    const Slot& slot = slots_[exchange.members[i].index()];
    if (exchange.contributed[i] && slot.presence == Presence::here) {
      output_.push_back({slot.connection, message, Outgoing::Then::stay});
    }
  }
}

void Meeting::forget_settled(Exchange& exchange) {
  if (!exchange.failure) return;
  for (std::size_t i = 0; i < exchange.members.size(); ++i) {
    if (!exchange.contributed[i] && slots_[exchange.members[i].index()].presence == Presence::here) return;
  }
  const ExchangeKey key = exchange.key;
  exchanges_.erase(key);
}

}  // namespace weft::bootstrap
