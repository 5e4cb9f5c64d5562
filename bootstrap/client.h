#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>

#include "base/clock.h"
#include "base/result.h"
#include "base/secret.h"
#include "bootstrap/address.h"
#include "bootstrap/frames.h"
#include "bootstrap/stream.h"

namespace weft::bootstrap {

/// A rank's authenticated connection to the service, used by one thread that blocks until its deadlines.
/// Internal: Asio types. Thread: blocking, one at a time.
class Client {
 public:
  /// Tries every address of the host once, IPv4 first.
  /// Errors: unauthenticated, unsupported — somebody else is there, and trying again is of no use; everything else
  /// (closed, timeout, not_found) may be otherwise a moment later.
  static Result<std::unique_ptr<Client>> connect(const HostPort& address, const Secret& secret, Deadline deadline);

  Client();
  ~Client();

  /// Errors: closed — the connection broke; timeout — and the connection is of no use any more.
  Status send(const RankMessage& message, Deadline deadline);
  Result<ServiceMessage> receive(std::size_t size_max, Deadline deadline);

  /// The numeric address of this end.
  [[nodiscard]] std::string local_address();
  [[nodiscard]] bool is_local_address_loopback();

 private:
  template <class T>
  Result<T> run_until(boost::asio::awaitable<Result<T>> work, Deadline deadline, const char* doing);
  boost::asio::awaitable<Status> open(boost::asio::ip::tcp::endpoint endpoint, Secret secret);

  boost::asio::io_context context_{1};
  Stream stream_;
};

}  // namespace weft::bootstrap
