#include "bootstrap/client.h"

#include <exception>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/check.h"
#include "bootstrap/endpoints.h"

namespace weft::bootstrap {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

/// What one attempt to reach one address may take: an address that swallows everything must not hide the next one.
constexpr Nanos kAttemptTimeout = std::chrono::seconds(5);

}  // namespace

Client::Client() : stream_(tcp::socket(context_)) {}
Client::~Client() { stream_.close(); }

template <class T>
Result<T> Client::run_until(asio::awaitable<Result<T>> work, Deadline deadline, const char* doing) {
  std::optional<Result<T>> answer;
  bool is_late = false;
  asio::steady_timer timer{context_};
  if (!deadline.is_never()) {
    timer.expires_at(std::chrono::steady_clock::time_point(deadline.at()));
    timer.async_wait([&](const boost::system::error_code& failure) {
      if (failure || answer) return;
      is_late = true;
      stream_.close();  // Wakes the work; half a message may be under way, so nothing can follow on this connection.
    });
  }
  asio::co_spawn(context_, std::move(work), [&](const std::exception_ptr& thrown, Result<T> result) {
    WEFT_CHECK(thrown == nullptr, "a client's coroutines throw nothing");
    answer.emplace(std::move(result));
    timer.cancel();
  });
  context_.restart();
  context_.run();
  WEFT_CHECK(answer.has_value(), "the work ends, if need be because its socket is closed");
  if (is_late && !*answer) return Error{ErrorCode::timeout, fmt::format("{} did not end in time", doing)};
  return *std::move(answer);
}

asio::awaitable<Status> Client::open(tcp::endpoint endpoint, Secret secret) {
  const auto [failure] = co_await stream_.socket().async_connect(endpoint, asio::as_tuple(asio::use_awaitable));
  if (failure) co_return Error::from_errno(ErrorCode::closed, "connecting", failure.value());
  stream_.set_options();
  co_return co_await stream_.shake_hands(Handshake::Role::client, secret);
}

Result<std::unique_ptr<Client>> Client::connect(const HostPort& address, const Secret& secret, Deadline deadline) {
  WEFT_TRY_ASSIGN(const auto endpoints, resolve(address));
  std::optional<Error> first_failure;
  for (const tcp::endpoint& endpoint : endpoints) {
    auto client = std::make_unique<Client>();
    const Deadline own = Deadline::after(kAttemptTimeout);
    const Status opened = client->run_until(client->open(endpoint, secret), own.at() < deadline.at() ? own : deadline,
                                            "connecting and the handshake");
    if (opened) return client;
    const std::string where = format_host_port(endpoint.address().to_string(), endpoint.port());
    if (!first_failure) first_failure = opened.error().within(where);
  }
  return first_failure.value_or(Error{ErrorCode::not_found, fmt::format("host \"{}\" has no address", address.host)});
}

Status Client::send(const RankMessage& message, Deadline deadline) {
  const std::vector<std::byte> bytes = encode(message);
  return run_until(stream_.write(bytes), deadline, "sending to the service");
}

Result<ServiceMessage> Client::receive(std::size_t size_max, Deadline deadline) {
  WEFT_TRY_ASSIGN(const auto bytes, run_until(stream_.read(size_max), deadline, "waiting for the service"));
  return decode_service_message(bytes);
}

std::string Client::local_address() {
  boost::system::error_code failure;
  return stream_.socket().local_endpoint(failure).address().to_string();
}

bool Client::is_local_address_loopback() {
  boost::system::error_code failure;
  return stream_.socket().local_endpoint(failure).address().is_loopback();
}

}  // namespace weft::bootstrap
