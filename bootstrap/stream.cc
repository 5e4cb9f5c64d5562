#include "bootstrap/stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "bootstrap/address.h"

namespace weft::bootstrap {
namespace {

namespace asio = boost::asio;
constexpr auto kToResult = asio::as_tuple(asio::use_awaitable);

Error connection_error(const boost::system::error_code& failure) {
  if (failure == asio::error::eof) return Error{ErrorCode::closed, "the other side closed the connection"};
  if (failure.category() == boost::system::system_category()) {
    return Error::from_errno(ErrorCode::closed, "the connection broke", failure.value());
  }
  return Error{ErrorCode::closed, "the connection broke: " + failure.message()};
}

}  // namespace

void Stream::set_options() noexcept {
  // Dead machines send nothing: probed after 10 s of silence, every 5 s, given up after 3; unsent data after 25 s.
  constexpr int kOn = 1;
  constexpr int kIdleSeconds = 10;
  constexpr int kBetweenSeconds = 5;
  constexpr int kProbes = 3;
  constexpr unsigned int kUnackedMilliseconds = 25'000;
  const int fd = socket_.native_handle();
  // None of these can fail on a TCP socket of Linux in a way that matters; without them only the latency is worse.
  static_cast<void>(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &kOn, sizeof kOn));
  static_cast<void>(setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &kOn, sizeof kOn));
  static_cast<void>(setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kIdleSeconds, sizeof kIdleSeconds));
  static_cast<void>(setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kBetweenSeconds, sizeof kBetweenSeconds));
  static_cast<void>(setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof kProbes));
  static_cast<void>(setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnackedMilliseconds, sizeof kUnackedMilliseconds));
}

void Stream::close() noexcept {
  boost::system::error_code ignored;  // An error of close() leaves nothing to do.
  socket_.close(ignored);
}

asio::awaitable<Status> Stream::read_exactly(std::span<std::byte> bytes) {
  const auto [failure, size] = co_await asio::async_read(socket_, asio::buffer(bytes.data(), bytes.size()), kToResult);
  if (failure) co_return connection_error(failure);
  co_return Status{};
}

asio::awaitable<Status> Stream::write_all(std::span<const std::byte> bytes) {
  const auto [failure, size] = co_await asio::async_write(socket_, asio::buffer(bytes.data(), bytes.size()), kToResult);
  if (failure) co_return connection_error(failure);
  co_return Status{};
}

asio::awaitable<Status> Stream::shake_hands(Handshake::Role role, Secret secret) {
  Handshake handshake{role, secret, kControlPurpose};
  std::array<std::byte, std::max({Handshake::kHelloSize, Handshake::kReplySize, Handshake::kProofSize})> buffer;
  while (true) {
    const std::vector<std::byte> output = handshake.take_output();
    if (!output.empty()) {
      Status sent = co_await write_all(output);
      if (!sent) co_return sent;
    }
    if (handshake.wanted() == 0) break;
    const std::span<std::byte> input = std::span(buffer).first(handshake.wanted());
    Status got = co_await read_exactly(input);
    if (!got) co_return got;
    Status accepted = handshake.receive(input);
    if (!accepted) {
      // A Weft of another version gets a last answer that names this one's.
      const std::vector<std::byte> parting = handshake.take_output();
      if (!parting.empty()) static_cast<void>(co_await write_all(parting));
      co_return accepted;
    }
  }
  const Handshake::Keys keys = handshake.keys();
  sealer_.emplace(keys.send);
  opener_.emplace(keys.receive);
  co_return Status{};
}

asio::awaitable<Result<std::vector<std::byte>>> Stream::read(std::size_t size_max) {
  std::vector<std::byte> message;
  while (true) {
    std::array<std::byte, kRecordHeaderSize> header;
    Status got = co_await read_exactly(header);
    if (!got) co_return got.error();
    const Result<RecordHeader> parsed = decode_record_header(header);
    if (!parsed) co_return parsed.error();
    if (parsed->size_bytes - kRecordTagSize > size_max - message.size()) {
      co_return Error{ErrorCode::malformed, "a message is longer than is allowed here"};
    }
    std::vector<std::byte> sealed(parsed->size_bytes);
    got = co_await read_exactly(sealed);
    if (!got) co_return got.error();
    const Status opened = opener_->open(header, sealed, message);
    if (!opened) co_return opened.error();
    if (!parsed->continues) co_return message;
    // Without progress the other side could keep this side reading for ever.
    if (parsed->size_bytes == kRecordTagSize)
      co_return Error{ErrorCode::malformed, "an empty record says more follows"};
  }
}

asio::awaitable<Status> Stream::write(std::span<const std::byte> message) {
  do {
    const auto part = message.first(std::min(message.size(), kRecordPayloadSizeMax));
    message = message.subspan(part.size());
    const auto position = message.empty() ? RecordSealer::Position::last : RecordSealer::Position::more_follows;
    const std::vector<std::byte> record = sealer_->seal(part, position);
    Status sent = co_await write_all(record);
    if (!sent) co_return sent;
  } while (!message.empty());
  co_return Status{};
}

std::string Stream::describe_remote() const {
  boost::system::error_code failure;
  const auto remote = socket_.remote_endpoint(failure);
  return failure ? "a vanished peer" : format_host_port(remote.address().to_string(), remote.port());
}

}  // namespace weft::bootstrap
