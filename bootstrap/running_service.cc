#include "bootstrap/running_service.h"

#include <bit>
#include <exception>
#include <functional>
#include <future>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/check.h"
#include "base/log.h"

namespace weft::bootstrap {
namespace {

namespace asio = boost::asio;
constexpr auto kToResult = asio::as_tuple(asio::use_awaitable);

/// Lets accept() find descriptors again; long against a system call, short against a human.
constexpr auto kPauseAfterFailedAccept = std::chrono::milliseconds(10);
/// What the last messages get to leave the machine when the service ends.
constexpr auto kStopTimeout = std::chrono::seconds(1);

/// Nothing in a coroutine of the service throws but std::bad_alloc; there is no better end than a loud one.
constexpr auto kMustNotThrow = [](const std::exception_ptr& thrown) {
  WEFT_CHECK(thrown == nullptr, "the service's coroutines throw nothing");
};

/// The addresses of this process's services.
struct Served {
  std::mutex mutex;
  std::multiset<std::string, std::less<>> addresses;
};
Served& served() {
  static auto& all = *new Served;  // Services may live until the process ends.
  return all;
}

std::chrono::steady_clock::time_point time_point_of(Deadline deadline) {
  return std::chrono::steady_clock::time_point(deadline.at());
}

}  // namespace

struct RunningService::Connection {
  Connection(ConnectionId own_id, asio::ip::tcp::socket socket)
      : id(own_id), stream(std::move(socket)), deadline(stream.socket().get_executor()) {}

  ConnectionId id;
  Stream stream;
  asio::steady_timer deadline;  ///< Of a stranger.
  std::string remote;
  std::deque<std::shared_ptr<const std::vector<std::byte>>> queue;
  bool is_sending = false;
  bool closes_when_sent = false;
  const char* dropped_because = nullptr;  ///< Why this side ended a stranger's connection.
  bool ends_with_service = false;
  bool has_proven = false;  ///< The secret.
  bool is_member = false;
};

RunningService::RunningService(Options options, std::string address, std::unique_ptr<asio::io_context> context,
                               asio::ip::tcp::acceptor acceptor, StrangerLimits limits)
    : context_(std::move(context)),
      options_(std::move(options)),
      address_(std::move(address)),
      limits_(limits),
      acceptor_(std::move(acceptor)),
      timer_(*context_),
      stop_timer_(*context_),
      pause_(*context_),
      meeting_({options_.size, address_, Deadline::after(options_.join_timeout)}) {
  {
    const std::lock_guard lock(served().mutex);
    served().addresses.insert(address_);
  }
  arm_timer();
  asio::co_spawn(*context_, accept_all(), kMustNotThrow);
  thread_ = std::thread([this] { context_->run(); });
}

bool is_served_here(std::string_view address) {
  const std::lock_guard lock(served().mutex);
  return served().addresses.contains(address);
}

RunningService::~RunningService() {
  {
    const std::lock_guard lock(served().mutex);
    served().addresses.erase(served().addresses.find(address_));
  }
  asio::post(*context_, [this] { stop(); });
  thread_.join();
  if (num_turned_away_ > 0) {
    log::info("bootstrap: the service at {} turned {} strangers away", address_, num_turned_away_);
  }
}

asio::awaitable<void> RunningService::accept_all() {
  while (true) {
    auto [failure, socket] = co_await acceptor_.async_accept(kToResult);
    if (is_stopping_) co_return;
    if (failure) {
      // Mostly out of descriptors: strangers must not hold the last one that a rank needs.
      log::debug("bootstrap: accept: {}", failure.message());
      drop_oldest_stranger();
      pause_.expires_after(kPauseAfterFailedAccept);
      co_await pause_.async_wait(kToResult);
      if (is_stopping_) co_return;
      continue;
    }
    if (strangers_.size() >= limits_.num_max + options_.size) drop_oldest_stranger();
    start_serving(std::move(socket));
  }
}

void RunningService::start_serving(asio::ip::tcp::socket socket) {
  const ConnectionId id{next_id_++};
  const auto connection = std::make_shared<Connection>(id, std::move(socket));
  connection->remote = connection->stream.describe_remote();
  connection->stream.set_options();
  connection->deadline.expires_after(limits_.deadline);
  connection->deadline.async_wait([connection](const boost::system::error_code& failure) {
    // A timer that fired in the moment of admission must not end a member.
    if (failure || connection->is_member) return;
    connection->dropped_because = "it took too long";
    connection->stream.close();
  });
  strangers_.emplace(id, connection);
  asio::co_spawn(*context_, serve(connection), kMustNotThrow);
}

void RunningService::drop_oldest_stranger() {
  if (strangers_.empty()) return;
  const ConnectionPtr oldest = strangers_.begin()->second;
  strangers_.erase(strangers_.begin());
  oldest->dropped_because = "there are too many";
  oldest->stream.close();  // Its coroutine wakes up, counts it and ends.
}

void RunningService::turn_away(const Connection& connection, const Error& why) {
  // One that proves the secret and goes only looked whether this job's service is here.
  if (connection.ends_with_service || connection.has_proven) return;
  ++num_turned_away_;
  meeting_.note_stranger();
  // A flood must not become a flood of lines: all of the first, then fewer and fewer.
  constexpr std::uint64_t kAlwaysLogged = 10;
  if (num_turned_away_ <= kAlwaysLogged || std::has_single_bit(num_turned_away_)) {
    log::info("bootstrap: stranger {} from {} turned away: {}", num_turned_away_, connection.remote,
              connection.dropped_because != nullptr ? connection.dropped_because : why.doing());
  }
}

asio::awaitable<Result<JoinMessage>> RunningService::admit(ConnectionPtr connection) {
  const Status proven = co_await connection->stream.shake_hands(Handshake::Role::server, options_.secret);
  if (!proven) co_return proven.error();
  connection->has_proven = true;
  const auto bytes = co_await connection->stream.read(kJoinSizeMax);
  if (!bytes) co_return bytes.error();
  auto message = decode_rank_message(*bytes);
  if (!message) co_return message.error();
  auto* join = std::get_if<JoinMessage>(&*message);
  if (join == nullptr) co_return Error{ErrorCode::malformed, "the first message is not who joins"};
  co_return std::move(*join);
}

asio::awaitable<void> RunningService::serve(ConnectionPtr connection) {
  const auto joined = co_await admit(connection);
  strangers_.erase(connection->id);
  connection->deadline.cancel();
  // It may have been dropped in the moment in which its last byte arrived; a rank comes again then.
  if (!joined || is_stopping_ || !connection->stream.socket().is_open()) {
    turn_away(*connection, joined ? Error{ErrorCode::closed, "dropped"} : joined.error());
    connection->stream.close();
    end_if_stopped();
    co_return;
  }
  connection->is_member = true;
  members_.emplace(connection->id, connection);
  meeting_.join(connection->id, *joined);
  send_output();
  const Error end = co_await serve_member(connection);
  // A rank that left in order is unknown to the meeting by now, and nothing happens.
  if (!is_stopping_) meeting_.drop(connection->id, end.message());
  members_.erase(connection->id);
  connection->stream.close();
  send_output();
  end_if_stopped();
}

asio::awaitable<Error> RunningService::serve_member(ConnectionPtr connection) {
  // A list of members takes at most 12 bytes for each rank of the job.
  const std::size_t size_max = kValueSizeMax + kOverheadSizeMax + std::size_t{12} * options_.size;
  while (true) {
    const auto bytes = co_await connection->stream.read(size_max);
    if (!bytes) co_return bytes.error();
    auto message = decode_rank_message(*bytes);
    if (!message) co_return message.error();
    const Status taken = take(connection->id, std::move(*message));
    if (!taken) co_return taken.error();
    send_output();
  }
}

Status RunningService::take(ConnectionId from, RankMessage message) {
  if (auto* contribution = std::get_if<ContributeMessage>(&message)) {
    return meeting_.contribute(from, std::move(*contribution));
  }
  if (std::holds_alternative<LeaveMessage>(message)) {
    meeting_.leave(from);
    return Error{ErrorCode::closed, "left in order"};
  }
  return Error{ErrorCode::malformed, "joined twice over one connection"};
}

void RunningService::send_output() {
  for (Outgoing& outgoing : meeting_.take_output()) {
    const auto found = members_.find(outgoing.to);
    if (found == members_.end()) continue;
    const ConnectionPtr& connection = found->second;
    connection->queue.push_back(std::move(outgoing.message));
    if (outgoing.then == Outgoing::Then::close) connection->closes_when_sent = true;
    if (!connection->is_sending) {
      connection->is_sending = true;
      asio::co_spawn(*context_, send_queued(connection), kMustNotThrow);
    }
  }
  arm_timer();
  publish();
}

asio::awaitable<void> RunningService::send_queued(ConnectionPtr connection) {
  while (!connection->queue.empty()) {
    const auto message = std::move(connection->queue.front());
    connection->queue.pop_front();
    const Status sent = co_await connection->stream.write(*message);
    if (!sent) {
      connection->queue.clear();
      connection->stream.close();  // The reading side notices and tells the meeting.
    }
  }
  connection->is_sending = false;
  if (connection->closes_when_sent) connection->stream.close();
}

void RunningService::arm_timer() {
  const Deadline next = meeting_.next_deadline();
  if (next.at() == armed_.at()) return;
  armed_ = next;
  if (next.is_never() || is_stopping_) {
    timer_.cancel();
    return;
  }
  timer_.expires_at(time_point_of(next));
  timer_.async_wait([this](const boost::system::error_code& failure) {
    if (failure || is_stopping_) return;
    armed_ = Deadline::never();
    meeting_.tick();
    send_output();
  });
}

void RunningService::publish() {
  if (is_stopping_ || !meeting_.is_done()) return;
  const std::lock_guard lock(mutex_);
  if (is_done_) return;
  is_done_ = true;
  outcome_ = meeting_.outcome();
  changed_.notify_all();
}

Status RunningService::wait_until_done(Deadline deadline) {
  std::unique_lock lock(mutex_);
  const auto is_done = [this] { return is_done_; };
  if (deadline.is_never()) {
    changed_.wait(lock, is_done);
  } else {
    changed_.wait_until(lock, time_point_of(deadline), is_done);
  }
  if (is_done_) return outcome_;
  lock.unlock();
  std::promise<Status> promise;
  asio::post(*context_, [&] { promise.set_value(meeting_.outcome()); });
  return promise.get_future().get();
}

void RunningService::stop() {
  is_stopping_ = true;
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
  timer_.cancel();
  for (const auto& [id, connection] : strangers_) {
    connection->ends_with_service = connection->stream.socket().is_open();
    connection->stream.close();
  }
  stop_timer_.expires_after(kStopTimeout);
  stop_timer_.async_wait([this](const boost::system::error_code& failure) {
    if (!failure) close_everything();
  });
  meeting_.close();
  send_output();
  end_if_stopped();
}

void RunningService::close_everything() {
  for (const auto& [id, connection] : members_) connection->stream.close();
}

void RunningService::end_if_stopped() {
  // The thread ends when nothing is left to wait for; this timer is the last.
  if (is_stopping_ && members_.empty()) stop_timer_.cancel();
}

}  // namespace weft::bootstrap
