#include "bootstrap/network_session.h"

#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/text.h"
#include "base/wire.h"
#include "bootstrap/rank_list.h"

namespace weft::bootstrap {
namespace {

/// Rank 0 waits this long for the others to leave before its service ends: ranks end together as a rule, and one that
/// goes on would find the service gone in its next exchange.
constexpr Nanos kLinger = std::chrono::seconds(2);
constexpr Nanos kLeaveTimeout = std::chrono::seconds(1);
/// What the service said before is in the socket already as a rule, if it said anything.
constexpr Nanos kLastWordsTimeout = std::chrono::milliseconds(200);

}  // namespace

Deadline with_grace(Deadline deadline) {
  if (deadline.is_never()) return deadline;
  const Nanos left = deadline.remaining();
  return Deadline::after(left > Nanos::max() - kAnswerGrace ? Nanos::max() : left + kAnswerGrace);
}

std::uint64_t timeout_of(Deadline deadline) {
  return deadline.is_never() ? std::numeric_limits<std::uint64_t>::max()
                             : static_cast<std::uint64_t>(deadline.remaining().count());
}

NetworkSession::~NetworkSession() {
  if (!failure_) {
    // A connection that is closed with unread input is reset, which may take the last word with it.
    if (is_result_owed_) (void)parts_.client->receive(kOverheadSizeMax, Deadline::after(kLastWordsTimeout));
    const Status left = parts_.client->send(LeaveMessage{}, Deadline::after(kLeaveTimeout));
    if (!left) log::debug("bootstrap: leaving: {}", left.error().message());
  }
  parts_.client.reset();
  if (parts_.service) {
    const Status done = parts_.service->wait_until_done(Deadline::after(kLinger));
    if (!done) log::info("bootstrap: the service ends: {}", done.error().message());
  }
}

Group NetworkSession::world() const {
  Group group;
  group.members.reserve(size());
  for (std::uint32_t i = 0; i < size(); ++i) group.members.emplace_back(i);
  group.own_index = rank().value();
  return group;
}

Error NetworkSession::fail(const Error& cause) {
  if (!failure_) failure_ = cause;
  return *failure_;
}

Status NetworkSession::check(const Group& group, std::string_view what, std::size_t value_size) const {
  if (failure_) return *failure_;
  if (group.own_index >= group.members.size() || group.members[group.own_index] != rank()) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("\"{}\": own_index of the group is not the place of rank {} in it", what, rank().value())};
  }
  for (const Rank member : group.members) {
    if (member.value() >= size()) {
      return Error{ErrorCode::invalid_argument, fmt::format("\"{}\": rank {} of the group is not in a job of {} ranks",
                                                            what, member.value(), size())};
    }
  }
  if (what.size() > kWhatSizeMax) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("the name {} is longer than {} characters", in_quotes(what), kWhatSizeMax)};
  }
  if (value_size > kValueSizeMax) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("\"{}\": {} bytes, at most {} can be exchanged", what, value_size, kValueSizeMax)};
  }
  return {};
}

NetworkSession::Begun NetworkSession::begin(const Group& group, Operation operation, std::string_view what,
                                            std::span<const std::byte> value, Deadline deadline) {
  ContributeMessage message;
  message.key = {group.id, sequences_[group.id]++};
  message.operation = operation;
  message.timeout_ns = timeout_of(deadline);
  message.own_index = group.own_index;
  message.what = what;
  ByteWriter members;
  encode_members(group.members, members);
  message.members = std::move(members).take();
  message.value.assign(value.begin(), value.end());
  const ExchangeKey key = message.key;
  return {key, parts_.client->send(std::move(message), with_grace(deadline))};
}

Result<std::vector<std::byte>> NetworkSession::exchange(const Group& group, Operation operation, std::string_view what,
                                                        std::span<const std::byte> value, Deadline deadline) {
  WEFT_TRY(check(group, what, value.size()));
  const auto [key, sent] = begin(group, operation, what, value, deadline);
  std::size_t size_max = kOverheadSizeMax;
  if (operation == Operation::all_gather) size_max += group.members.size() * (sizeof(std::uint32_t) + kValueSizeMax);
  if (sent) return await_result(key, size_max, with_grace(deadline));
  if (sent.error().code() == ErrorCode::closed) {
    // The service may have said why before it went.
    auto last_words = await_result(key, size_max, Deadline::after(kLastWordsTimeout));
    if (last_words) return last_words;
  }
  return fail(sent.error().within(fmt::format("{} \"{}\"", name_of(operation), what)));
}

Result<std::vector<std::byte>> NetworkSession::await_result(const ExchangeKey& key, std::size_t size_max,
                                                            Deadline deadline) {
  const std::string& address = parts_.identity.address;
  while (true) {
    auto message = parts_.client->receive(size_max, deadline);
    if (!message) {
      const Error& cause = message.error();
      if (cause.code() == ErrorCode::timeout) {
        return fail(Error{ErrorCode::timeout, fmt::format("the service at {} does not answer", address),
                          "Look at the process that serves it, which is rank 0 as a rule, and at its machine"});
      }
      if (cause.code() == ErrorCode::closed) {
        return fail(Error::from_errno(ErrorCode::peer_failed,
                                      fmt::format("the service at {} is gone: {}", address, cause.doing()),
                                      cause.system_errno(), "It runs in the process of rank 0 as a rule"));
      }
      return fail(cause.within(fmt::format("the service at {}", address)));
    }
    if (auto* result = std::get_if<ResultMessage>(&*message); result != nullptr && result->key == key) {
      return std::move(result->body);
    }
    if (const auto* failed = std::get_if<FailedMessage>(&*message); failed != nullptr && failed->key == key) {
      return failed->error;
    }
    if (const auto* refused = std::get_if<RefusedMessage>(&*message)) return fail(refused->error);
    is_result_owed_ = false;
    if (std::holds_alternative<ClosingMessage>(*message)) {
      return fail(Error{ErrorCode::closed, fmt::format("the service at {} has ended", address),
                        "It runs in the process of rank 0 as a rule, which left the job"});
    }
  }
}

Result<std::vector<std::vector<std::byte>>> NetworkSession::all_gather(const Group& group, std::string_view what,
                                                                       std::span<const std::byte> own,
                                                                       Deadline deadline) {
  WEFT_TRY_ASSIGN(const auto body, exchange(group, Operation::all_gather, what, own, deadline));
  auto values = decode_values(body, group.members.size());
  if (!values) return fail(values.error());
  return values;
}

Status NetworkSession::barrier(const Group& group, std::string_view what, Deadline deadline) {
  WEFT_TRY(exchange(group, Operation::barrier, what, {}, deadline));
  return {};
}

void NetworkSession::pass(const Group& group, std::string_view what, Deadline deadline) {
  if (!check(group, what, 0)) return;
  const auto [key, sent] = begin(group, Operation::barrier, what, {}, deadline);
  if (!sent) return;
  if (!parts_.service && !is_served_here(parts_.identity.address)) {
    is_result_owed_ = true;
    return;
  }
  const auto result = await_result(key, kOverheadSizeMax, with_grace(deadline));
  if (!result) log::info("bootstrap: \"{}\": {}", what, result.error().message());
}

Result<std::uint64_t> NetworkSession::agree(const Group& group, std::string_view what, std::uint64_t value,
                                            Deadline deadline) {
  const std::span<const std::uint64_t> own{&value, 1};
  WEFT_TRY_ASSIGN(const auto body, exchange(group, Operation::agree, what, std::as_bytes(own), deadline));
  ByteReader reader{body};
  const auto all = reader.number<std::uint64_t>();
  if (const Status whole = reader.finish("the result of agree"); !whole) return fail(whole.error());
  return all;
}

}  // namespace weft::bootstrap
