#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "base/handshake.h"
#include "base/result.h"
#include "base/secret.h"
#include "bootstrap/records.h"

namespace weft::bootstrap {

/// The handshake's purpose on a control connection.
constexpr std::string_view kControlPurpose = "control";

/// A socket over which encrypted messages go once the handshake is done. Internal to this folder: only its sources
/// include Asio. Thread: the one that runs the socket's io_context.
class Stream {
 public:
  explicit Stream(boost::asio::ip::tcp::socket socket) : socket_(std::move(socket)) {}

  /// Proves the secret to the other side and has it proven.
  /// Errors: as Handshake::receive; closed — the other side ended or the connection broke (transient).
  boost::asio::awaitable<Status> shake_hands(Handshake::Role role, Secret secret);

  /// The next message.
  /// Errors: closed — an orderly or abrupt end (system_errno tells); malformed — not of the format, or longer than
  /// `size_max`; unauthenticated — changed on its way.
  boost::asio::awaitable<Result<std::vector<std::byte>>> read(std::size_t size_max);

  /// Sends one message, cut into records that are sealed one at a time, so that a long message costs little memory.
  /// Memory: `message` must live until the answer.
  boost::asio::awaitable<Status> write(std::span<const std::byte> message);

  /// Small messages at once, and a peer whose machine died noticed within about half a minute.
  void set_options() noexcept;
  void close() noexcept;
  /// "10.0.0.1:4000": the other side, for people.
  [[nodiscard]] std::string describe_remote() const;
  [[nodiscard]] boost::asio::ip::tcp::socket& socket() noexcept { return socket_; }

 private:
  boost::asio::awaitable<Status> read_exactly(std::span<std::byte> bytes);
  boost::asio::awaitable<Status> write_all(std::span<const std::byte> bytes);

  boost::asio::ip::tcp::socket socket_;
  std::optional<RecordSealer> sealer_;
  std::optional<RecordOpener> opener_;
};

}  // namespace weft::bootstrap
