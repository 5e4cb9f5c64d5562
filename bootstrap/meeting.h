#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "bootstrap/frames.h"

namespace weft::bootstrap {

/// The service's name for one authenticated connection.
enum class ConnectionId : std::uint64_t {};

/// What the service is to send; several connections may share the bytes.
struct Outgoing {
  enum class Then : std::uint8_t { stay, close };
  ConnectionId to{};
  std::shared_ptr<const std::vector<std::byte>> message;
  Then then = Then::stay;
};

/// What the service knows and decides, without I/O: who has joined, which exchanges are under way, who is told what.
/// The owner feeds it what arrives, sends what take_output() returns, and calls tick() when next_deadline() has passed.
/// Time comes from the given clock only. Thread: one.
class Meeting {
 public:
  struct Options {
    std::uint32_t size = 1;
    std::string address;  ///< For messages.
    Deadline join_deadline = Deadline::never();
  };
  explicit Meeting(Options options, const Clock& clock = steady_clock());
  ~Meeting();

  void join(ConnectionId from, const JoinMessage& message);
  /// Errors: malformed — a member that contradicts itself; the owner closes the connection.
  Status contribute(ConnectionId from, ContributeMessage message);
  /// The rank ends in order: what it contributed stays, what it has not contributed fails.
  void leave(ConnectionId from);
  /// The connection broke: every exchange that waits with this rank as a member fails at once. Unknown ids are ignored.
  void drop(ConnectionId from, const std::string& why);
  /// A connection ended that did not prove the job's secret: told to those who wait in vain for somebody.
  void note_stranger() noexcept { ++num_strangers_; }
  /// Fails what has waited too long.
  void tick();
  /// Tells every rank that is still here that the service ends.
  void close();

  [[nodiscard]] Deadline next_deadline() const;
  [[nodiscard]] std::vector<Outgoing> take_output();

  /// Every rank has joined and is gone again, or the job did not come about.
  [[nodiscard]] bool is_done() const noexcept;
  /// How it ended, or who is waited for: for wait_until_done.
  [[nodiscard]] Status outcome() const;

 private:
  enum class Presence : std::uint8_t { absent, here, left, dropped };
  struct Slot {
    Presence presence = Presence::absent;
    ConnectionId connection{};
    std::string host;
    std::uint32_t pid = 0;
    std::string why_gone;
  };
  struct Exchange;

  [[nodiscard]] std::string describe(Rank rank) const;
  [[nodiscard]] std::string describe_some(const std::vector<Rank>& ranks) const;
  [[nodiscard]] std::optional<Error> find_join_mistake(const JoinMessage& message) const;
  [[nodiscard]] Error join_timeout_error() const;
  [[nodiscard]] Error exchange_timeout_error(const Exchange& exchange) const;
  [[nodiscard]] Error gone_error(const Exchange& exchange, Rank gone) const;
  [[nodiscard]] std::optional<Error> find_mismatch(const Exchange& exchange, Rank rank,
                                                   const ContributeMessage& message) const;
  Result<std::shared_ptr<Exchange>> make_exchange(const ContributeMessage& message);
  std::shared_ptr<const std::vector<std::byte>> result_of(Exchange& exchange) const;
  void fail_join(const Error& cause);
  void fail(Exchange& exchange, const Error& cause);
  void finish(Exchange& exchange);
  void forget_settled(Exchange& exchange);
  void depart(Rank rank, Presence how, const std::string& why);
  void send(ConnectionId to, const ServiceMessage& message, Outgoing::Then then = Outgoing::Then::stay);

  const Clock& clock_;
  Options options_;
  Nanos started_at_;
  Deadline join_deadline_;
  std::vector<Slot> slots_;
  std::map<ConnectionId, Rank> ranks_;
  std::uint32_t num_joined_ = 0;
  std::uint32_t num_gone_ = 0;
  bool is_complete_ = false;  ///< Everybody has joined and was told.
  std::uint64_t num_strangers_ = 0;
  std::optional<Error> join_failure_;  ///< Why the job does not come about.
  std::optional<Error> first_drop_;
  std::deque<std::string> refusals_;  ///< The latest few, for the message of a timeout.
  std::map<ExchangeKey, std::shared_ptr<Exchange>> exchanges_;
  std::vector<Outgoing> output_;
};

}  // namespace weft::bootstrap
