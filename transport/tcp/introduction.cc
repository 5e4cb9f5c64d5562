#include "transport/tcp/introduction.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace weft::transport::tcp {
namespace {

template <class Wire>
std::span<const std::byte> bytes_of(const Wire& wire) {
  return std::as_bytes(std::span(&wire, 1));
}

template <class Wire>
Wire from_bytes(const std::vector<std::byte>& bytes) {
  Wire wire;
  std::memcpy(&wire, bytes.data(), sizeof wire);
  return wire;
}

}  // namespace

Introduction::Introduction(Fd fd, const Self& self, Handshake::Role role)
    : fd_(std::move(fd)), self_(&self), role_(role), handshake_(role, self.secret, "tcp") {}

Introduction Introduction::call(Fd fd, const Self& self, const IdentityWire& identity) {
  Introduction made(std::move(fd), self, Handshake::Role::client);
  made.identity_ = identity;
  made.step_ = Step::connecting;
  return made;
}

Introduction Introduction::answer(Fd fd, const Self& self, const Clock& clock) {
  Introduction made(std::move(fd), self, Handshake::Role::server);
  made.begun_ = clock.now();
  made.expect(Step::proving, made.handshake_.wanted());
  return made;
}

short Introduction::wanted_events() const noexcept {
  if (state_ == State::failed || state_ == State::finished) return 0;
  if (step_ == Step::connecting || output_sent_ < output_.size()) return POLLOUT;
  return POLLIN;
}

void Introduction::expect(Step step, std::size_t size_bytes) {
  step_ = step;
  input_.clear();
  input_wanted_ = size_bytes;
}

void Introduction::put(std::span<const std::byte> bytes) { output_.insert(output_.end(), bytes.begin(), bytes.end()); }

void Introduction::give_up(Error why) {
  if (state_ == State::failed) return;
  failure_ = std::move(why);
  state_ = State::failed;
  fd_.reset();
}

void Introduction::advance() {
  if (state_ == State::failed || state_ == State::finished) return;
  if (step_ == Step::connecting) {
    if (const int error = take_socket_error(fd_.get()); error != 0) {
      return give_up(Error::from_errno(ErrorCode::peer_failed, "connecting", error));
    }
    put(handshake_.take_output());
    expect(Step::proving, handshake_.wanted());
  }
  while (flush()) {
    if (step_ == Step::over) {
      state_ = State::finished;
      return;
    }
    if (!fill()) return;
    if (Status status = take_input(); !status) return give_up(status.error());
  }
}

bool Introduction::flush() {
  while (output_sent_ < output_.size()) {
    const ssize_t sent =
        ::send(fd_.get(), output_.data() + output_sent_, output_.size() - output_sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return false;
    if (sent < 0) {
      give_up(Error::from_errno(ErrorCode::peer_failed, "sending the introduction", errno));
      return false;
    }
    output_sent_ += static_cast<std::size_t>(sent);
  }
  output_.clear();
  output_sent_ = 0;
  return true;
}

bool Introduction::fill() {
  while (input_.size() < input_wanted_) {
    std::array<std::byte, 512> part;
    const std::size_t room = std::min(part.size(), input_wanted_ - input_.size());
    const ssize_t got = ::recv(fd_.get(), part.data(), room, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return false;
    if (got < 0) {
      give_up(Error::from_errno(ErrorCode::peer_failed, "receiving the introduction", errno));
      return false;
    }
    if (got == 0) {
      give_up(Error{ErrorCode::peer_failed, "the other side hung up during the introduction"});
      return false;
    }
    input_.insert(input_.end(), part.begin(), part.begin() + got);
  }
  // Waiting for the owner's choice: nothing is wanted, and bytes that come are not ours.
  return input_wanted_ > 0;
}

Status Introduction::take_input() {
  switch (step_) {
    case Step::proving:
      WEFT_TRY(handshake_.receive(input_));
      put(handshake_.take_output());
      if (handshake_.wanted() > 0) {
        expect(Step::proving, handshake_.wanted());
      } else if (!handshake_.is_complete()) {
        return Error{ErrorCode::unauthenticated, "the other side did not prove the job's secret"};
      } else if (role_ == Handshake::Role::client) {
        put(bytes_of(identity_));
        expect(Step::verdict, sizeof(VerdictWire));
      } else {
        expect(Step::identity, sizeof(IdentityWire));
      }
      return {};
    case Step::identity: return take_identity();
    case Step::verdict: return take_verdict();
    case Step::choice:
      if (from_bytes<ChosenWire>(input_).version != kIdentityVersion) {
        return Error{ErrorCode::unsupported, "the peer speaks another version of Weft"};
      }
      expect(Step::over, 0);
      return {};
    case Step::connecting:
    case Step::waiting_for_choice:
    case Step::over: break;
  }
  return {};
}

Status Introduction::take_identity() {
  identity_ = from_bytes<IdentityWire>(input_);
  if (identity_.version != kIdentityVersion) {
    return Error{ErrorCode::unsupported, "the peer speaks another version of Weft"};
  }
  const bool is_for_us = identity_.to == self_->rank.value() && identity_.to_id == self_->id;
  const bool is_sound = identity_.num_streams >= 1 && identity_.stream_index < identity_.num_streams;
  const VerdictWire verdict{.is_accepted = is_for_us && is_sound, .rank = self_->rank.value(), .id = self_->id};
  put(bytes_of(verdict));
  if (verdict.is_accepted == 0) {
    (void)flush();
    return Error{ErrorCode::mismatch, fmt::format("rank {} called rank {} here", identity_.from, identity_.to)};
  }
  expect(Step::choice, sizeof(ChosenWire));
  return {};
}

Status Introduction::take_verdict() {
  const auto verdict = from_bytes<VerdictWire>(input_);
  if (verdict.version != kIdentityVersion) {
    return Error{ErrorCode::unsupported, "the peer speaks another version of Weft"};
  }
  if (verdict.rank != identity_.to || verdict.id != identity_.to_id || verdict.is_accepted != 1) {
    return Error{ErrorCode::mismatch, fmt::format("another process of the job answers there, rank {}", verdict.rank)};
  }
  expect(Step::waiting_for_choice, 0);
  state_ = State::proposed;
  return {};
}

void Introduction::choose() {
  if (state_ != State::proposed) return;
  state_ = State::working;
  put(bytes_of(ChosenWire{}));
  expect(Step::over, 0);
  advance();
}

}  // namespace weft::transport::tcp
