#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace weft::bootstrap {

/// The messages between a rank and the service, as values. Encoding and decoding are pure functions; what is decoded
/// may come from a hostile or confused peer, so every length and enumerator is checked. docs/wire_format.md has the
/// layout.

constexpr std::size_t kValueSizeMax = std::size_t{1} << 20;  ///< One member's bytes in one exchange.
constexpr std::size_t kWhatSizeMax = 64;
/// Everything of a message but its value and its list of members; the texts in it are cut to fit.
constexpr std::size_t kOverheadSizeMax = 16 * 1024;
/// A join message: host and job are cut to 255 bytes each.
constexpr std::size_t kJoinSizeMax = 1024;

enum class Operation : std::uint8_t { all_gather = 1, barrier = 2, agree = 3 };
std::string_view name_of(Operation operation) noexcept;

/// Which exchange: the group's id, and how many the group had before this one.
struct ExchangeKey {
  std::uint64_t group = 0;
  std::uint64_t sequence = 0;
  friend constexpr auto operator<=>(const ExchangeKey&, const ExchangeKey&) = default;
};

/// Rank -> service, once, first.
struct JoinMessage {
  Rank rank;
  std::uint32_t size = 0;
  std::uint32_t pid = 0;
  std::uint64_t timeout_ns = 0;  ///< How long this rank waits for the others; the maximum means for ever.
  std::string host;
};
/// Rank -> service: this member's part of an exchange.
struct ContributeMessage {
  ExchangeKey key;
  Operation operation = Operation::barrier;
  std::uint64_t timeout_ns = 0;
  std::uint32_t own_index = 0;
  std::string what;
  std::vector<std::byte> members;  ///< As encode_members wrote them; equal groups have equal bytes.
  std::vector<std::byte> value;
};
/// Rank -> service: an orderly end.
struct LeaveMessage {};

/// Service -> rank: it is a member now; from here on a broken connection is a failure, and not a reason to try again.
struct AcceptedMessage {};
/// Service -> rank: everybody has joined.
struct WelcomeMessage {
  std::uint32_t size = 0;
};
/// Service -> rank: the job does not come about, or not with this rank.
struct RefusedMessage {
  Error error;
};
/// Service -> rank: the exchange is complete. all_gather: a value (length, bytes) for each member; agree: 8 bytes.
struct ResultMessage {
  ExchangeKey key;
  std::vector<std::byte> body;
};
/// Service -> rank: the exchange failed, for every member for the same reason.
struct FailedMessage {
  ExchangeKey key;
  Error error;
};
/// Service -> rank: the service ends.
struct ClosingMessage {};

using RankMessage = std::variant<JoinMessage, ContributeMessage, LeaveMessage>;
using ServiceMessage =
    std::variant<AcceptedMessage, WelcomeMessage, RefusedMessage, ResultMessage, FailedMessage, ClosingMessage>;

std::vector<std::byte> encode(const RankMessage& message);
std::vector<std::byte> encode(const ServiceMessage& message);

/// Errors of both: malformed — not such a message.
Result<RankMessage> decode_rank_message(std::span<const std::byte> bytes);
Result<ServiceMessage> decode_service_message(std::span<const std::byte> bytes);

/// The values of an all_gather's result.
/// Errors: malformed — not exactly `num_members` values of at most kValueSizeMax.
Result<std::vector<std::vector<std::byte>>> decode_values(std::span<const std::byte> body, std::size_t num_members);

}  // namespace weft::bootstrap
