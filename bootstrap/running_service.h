#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "bootstrap/meeting.h"
#include "bootstrap/session.h"
#include "bootstrap/stream.h"

namespace weft::bootstrap {

/// How much strangers may cost. A connection is a stranger until it has proven the secret and said who it is.
struct StrangerLimits {
  Nanos deadline = std::chrono::seconds(5);
  /// The ranks of a job may all come in the same moment, so they count on top.
  std::size_t num_max = 256;
};

/// The service: the sockets around a Meeting, on a thread of its own. Internal: Asio types.
/// Thread: everything but the public functions runs on that thread.
class RunningService final : public Service {
 public:
  RunningService(Options options, std::string address, std::unique_ptr<boost::asio::io_context> context,
                 boost::asio::ip::tcp::acceptor acceptor, StrangerLimits limits);
  ~RunningService() override;

  [[nodiscard]] std::string address() const override { return address_; }
  Status wait_until_done(Deadline deadline) override;

 private:
  struct Connection;
  using ConnectionPtr = std::shared_ptr<Connection>;

  boost::asio::awaitable<void> accept_all();
  boost::asio::awaitable<void> serve(ConnectionPtr connection);
  boost::asio::awaitable<Result<JoinMessage>> admit(ConnectionPtr connection);
  boost::asio::awaitable<Error> serve_member(ConnectionPtr connection);
  boost::asio::awaitable<void> send_queued(ConnectionPtr connection);
  Status take(ConnectionId from, RankMessage message);

  void start_serving(boost::asio::ip::tcp::socket socket);
  void drop_oldest_stranger();
  void turn_away(const Connection& connection, const Error& why);
  void send_output();
  void arm_timer();
  void publish();
  void stop();
  void close_everything();
  void end_if_stopped();

  const std::unique_ptr<boost::asio::io_context> context_;
  const Options options_;
  const std::string address_;
  const StrangerLimits limits_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer stop_timer_;
  boost::asio::steady_timer pause_;
  Deadline armed_ = Deadline::never();
  Meeting meeting_;
  std::uint64_t next_id_ = 1;
  std::map<ConnectionId, ConnectionPtr> strangers_;  ///< Oldest first: ids count up.
  std::map<ConnectionId, ConnectionPtr> members_;
  std::uint64_t num_turned_away_ = 0;
  bool is_stopping_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_done_ = false;  ///< Guarded by mutex_, as is outcome_.
  Status outcome_;
  std::thread thread_;
};

/// Service::start with other limits, for tests.
Result<std::unique_ptr<Service>> start_service(Service::Options options, StrangerLimits limits);

}  // namespace weft::bootstrap
