#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/handshake.h"
#include "base/ids.h"
#include "transport/tcp/socket.h"
#include "transport/tcp/wire.h"

namespace weft::transport::tcp {

/// Who we are to peers.
struct Self {
  Rank rank;
  TransportId id{};
  Secret secret;  ///< Derived for tcp.
};

/// One fresh connection until both sides know who is there: the proof of the secret, then identities, then the
/// connecting side's choice. It reads exactly its own bytes, so that the frames behind them stay in the socket.
/// A stranger costs one socket and less than 1 KiB.
class Introduction {
 public:
  enum class State : std::uint8_t {
    working,
    proposed,  ///< Calling side: the right peer answered. choose() takes this connection into use.
    finished,  ///< take_socket() gives the connection; identity() says whose it is.
    failed,    ///< failure() says why.
  };

  /// The calling side, on a socket that is still connecting; `identity` says who calls and whom.
  static Introduction call(Fd fd, const Self& self, const IdentityWire& identity);
  /// The answering side.
  static Introduction answer(Fd fd, const Self& self, const Clock& clock = steady_clock());

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  [[nodiscard]] short wanted_events() const noexcept;
  /// Goes on as far as it can without blocking.
  void advance();
  void choose();
  void give_up(Error why);

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] const Error& failure() const noexcept { return *failure_; }
  [[nodiscard]] const IdentityWire& identity() const noexcept { return identity_; }
  [[nodiscard]] Fd take_socket() noexcept { return std::move(fd_); }
  /// When it began (answering side).
  [[nodiscard]] Nanos begun() const noexcept { return begun_; }

 private:
  enum class Step : std::uint8_t { connecting, proving, identity, verdict, choice, waiting_for_choice, over };

  Introduction(Fd fd, const Self& self, Handshake::Role role);
  void expect(Step step, std::size_t size_bytes);
  void put(std::span<const std::byte> bytes);
  [[nodiscard]] bool flush();
  [[nodiscard]] bool fill();
  [[nodiscard]] Status take_input();
  [[nodiscard]] Status take_identity();
  [[nodiscard]] Status take_verdict();

  Fd fd_;
  const Self* self_;
  Handshake::Role role_;
  Handshake handshake_;
  Step step_ = Step::proving;
  State state_ = State::working;
  IdentityWire identity_;
  std::vector<std::byte> input_;
  std::size_t input_wanted_ = 0;
  std::vector<std::byte> output_;
  std::size_t output_sent_ = 0;
  std::optional<Error> failure_;
  Nanos begun_{0};
};

}  // namespace weft::transport::tcp
