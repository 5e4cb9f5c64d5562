#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "transport/tcp/limits.h"
#include "transport/tcp/tcp_endpoint.h"

// The receiving half of TcpEndpoint. Every length and place that a frame names is checked before it is used: a peer
// that breaks the format loses its link, and no memory is touched.
namespace weft::transport::tcp {
namespace {

Error malformed(std::string what) { return Error{ErrorCode::malformed, "the peer sent " + std::move(what)}; }

}  // namespace

std::string TcpEndpoint::peer_text() const { return fmt::format("rank {}", peer_.value()); }

void TcpEndpoint::receive_stream(std::size_t index, Sink& sink) {
  Stream& stream = streams_[index];
  // Messages shown by the last poll are over: their place may be used.
  if (stream.begin == stream.end) {
    stream.begin = stream.end = 0;
  } else if (kReceiveBuffer - stream.end < kMessageSizeMax + sizeof(FrameWire)) {
    std::memmove(stream.buffer.get(), stream.buffer.get() + stream.begin, stream.end - stream.begin);
    stream.end -= stream.begin;
    stream.begin = 0;
  }
  std::uint64_t budget = kPollBudget;
  while (!sink.is_full() && !is_broken_) {
    if (parse(index, sink) == Progress::moved) continue;
    if (is_broken_ || stream.is_ended || !stream.fd.is_open() || budget == 0) return;
    if (receive_bytes(index, sink, budget) == Progress::stuck) return;
  }
}

TcpEndpoint::Progress TcpEndpoint::parse(std::size_t index, Sink& sink) {
  Stream& stream = streams_[index];
  const std::size_t held = stream.end - stream.begin;
  FrameWire frame;
  if (stream.inbound || held < sizeof frame) return Progress::stuck;
  const std::byte* at = stream.buffer.get() + stream.begin;
  std::memcpy(&frame, at, sizeof frame);
  if (frame.version != kFrameVersion) {
    fail(malformed(fmt::format("a frame of version {}", frame.version)));
    return Progress::stuck;
  }
  if (is_peer_closing_ && index == 0) {
    fail(malformed("a frame after its end"));
    return Progress::stuck;
  }
  switch (frame.kind) {
    case FrameKind::write: return parse_write(stream, frame, sink);
    case FrameKind::message:
      if (index != 0 || frame.flags != 0 || frame.size_bytes > kMessageSizeMax) break;
      if (held < sizeof frame + frame.size_bytes) return Progress::stuck;
      stream.begin += sizeof frame + frame.size_bytes;
      sink.put({.kind = Completion::Kind::message, .peer = peer_, .message = {at + sizeof frame, frame.size_bytes}});
      return Progress::moved;
    case FrameKind::close:
      if (index != 0 || frame.flags != 0 || frame.size_bytes != 0) break;
      stream.begin += sizeof frame;
      is_peer_closing_ = true;
      return Progress::moved;
  }
  fail(malformed(fmt::format("a frame of kind {} with flags {} and {} bytes on stream {}",
                             static_cast<unsigned>(frame.kind), frame.flags, frame.size_bytes, index)));
  return Progress::stuck;
}

TcpEndpoint::Progress TcpEndpoint::parse_write(Stream& stream, const FrameWire& frame, Sink& sink) {
  Inbound inbound;
  if (stream.end - stream.begin < sizeof frame + sizeof inbound.write) return Progress::stuck;
  std::memcpy(&inbound.write, stream.buffer.get() + stream.begin + sizeof frame, sizeof inbound.write);
  const WriteWire& write = inbound.write;
  const std::uint64_t size = frame.size_bytes;
  inbound.has_notice = (frame.flags & kHasNotice) != 0;
  inbound.at = write.offset;
  inbound.left = inbound.size_bytes = size;
  const auto refuse = [&](std::string what) {
    fail(malformed(std::move(what)));
    return Progress::stuck;
  };
  if ((frame.flags & ~kHasNotice) != 0) return refuse("a write with unknown flags");
  if (size > write.total_bytes || (size == 0 && write.total_bytes != 0))
    return refuse("a stripe larger than its write");
  if (regions_.find({write.region_first, write.region_second}, write.offset, size) == nullptr) {
    return refuse(fmt::format("a write of {} bytes at {} outside of every registered region", size, write.offset));
  }
  if (size != write.total_bytes) {
    const auto [found, is_new] = incomplete_.try_emplace(write.write_id);
    Incomplete& whole = found->second;
    if (is_new) {
      whole = {.total = write.total_bytes, .has_notice = inbound.has_notice, .notice = write.notice};
      if (incomplete_.size() > kIncompleteMax) return refuse("more unfinished writes than the protocol allows");
    }
    const bool is_same =
        whole.total == write.total_bytes && whole.has_notice == inbound.has_notice && whole.notice == write.notice;
    if (!is_same || size > whole.total - whole.announced) return refuse("stripes that do not make one write");
    whole.announced += size;
  }
  stream.begin += sizeof frame + sizeof write;
  stream.inbound = inbound;
  // What came with the header is copied; the rest is received into its place.
  take_payload(stream, std::min<std::uint64_t>(size, stream.end - stream.begin), sink);
  return Progress::moved;
}

void TcpEndpoint::take_payload(Stream& stream, std::uint64_t size_bytes, Sink& sink) {
  Inbound& inbound = *stream.inbound;
  if (size_bytes > 0) {
    // parse_write found this place in the same call.
    std::byte* to = regions_.find({inbound.write.region_first, inbound.write.region_second}, inbound.at, size_bytes);
    std::memcpy(to, stream.buffer.get() + stream.begin, size_bytes);
    stream.begin += size_bytes;
    inbound.at += size_bytes;
    inbound.left -= size_bytes;
  }
  if (inbound.left == 0) finish_inbound(stream, sink);
}

void TcpEndpoint::finish_inbound(Stream& stream, Sink& sink) {
  const Inbound inbound = *stream.inbound;
  stream.inbound.reset();
  if (inbound.size_bytes != inbound.write.total_bytes) {
    const auto found = incomplete_.find(inbound.write.write_id);
    found->second.arrived += inbound.size_bytes;
    if (found->second.arrived < found->second.total) return;
    incomplete_.erase(found);
  }
  if (inbound.has_notice) {
    sink.put({.kind = Completion::Kind::notice, .peer = peer_, .notice = inbound.write.notice});
  }
}

TcpEndpoint::Progress TcpEndpoint::receive_bytes(std::size_t index, Sink& sink, std::uint64_t& budget) {
  Stream& stream = streams_[index];
  std::array<iovec, 2> parts;
  std::size_t count = 0;
  std::size_t wanted = 0;
  const std::size_t room = kReceiveBuffer - stream.end;
  if (stream.inbound) {
    // Looked up each time: a region that was released meanwhile must not be written.
    Inbound& inbound = *stream.inbound;
    std::byte* to = regions_.find({inbound.write.region_first, inbound.write.region_second}, inbound.at, inbound.left);
    if (to == nullptr) {
      fail(malformed("a write to a region that was released meanwhile"));
      return Progress::stuck;
    }
    const std::uint64_t direct = std::min(inbound.left, kReceiveMax);
    parts[count++] = {to, direct};
    wanted = direct;
    if (direct == inbound.left) {
      parts[count++] = {stream.buffer.get() + stream.end, std::min(room, kPeek)};
      wanted += parts[1].iov_len;
    }
  } else {
    wanted = std::min(room, kReadAhead);
    if (wanted == 0) return Progress::stuck;  // Shown messages fill the buffer until the next poll.
    parts[count++] = {stream.buffer.get() + stream.end, wanted};
  }
  const ssize_t result = count == 1 ? ::recv(stream.fd.get(), parts[0].iov_base, parts[0].iov_len, MSG_DONTWAIT)
                                    : ::readv(stream.fd.get(), parts.data(), static_cast<int>(count));
  if (result <= 0) {
    const int error = result < 0 ? errno : 0;
    if (error == EINTR) return Progress::moved;
    if (error == EAGAIN) {
      if (failure_) fail(*failure_);  // Sending failed before, and now everything that came is read.
    } else if (error != 0) {
      take_receive_error(index, error);
    } else {
      take_end(index);
    }
    return Progress::stuck;
  }
  auto got = static_cast<std::uint64_t>(result);
  // Less than there was room for: the socket is empty, and asking again would only cost a system call.
  budget = got < wanted ? 0 : budget - std::min(budget, got);
  if (stream.inbound) {
    Inbound& inbound = *stream.inbound;
    const std::uint64_t direct = std::min(got, inbound.left);
    inbound.at += direct;
    inbound.left -= direct;
    got -= direct;
    stream.end += got;
    if (inbound.left == 0) finish_inbound(stream, sink);
  } else {
    stream.end += got;
  }
  return Progress::moved;
}

void TcpEndpoint::take_receive_error(std::size_t index, int system_errno) {
  // After both the peer's close and its data nothing is lost by a reset.
  if (is_peer_closing_ && incomplete_.empty() && !streams_[index].inbound && is_all_sent()) return take_end(index);
  fail(failure_ ? *failure_ : Error::from_errno(ErrorCode::peer_failed, "receiving from " + peer_text(), system_errno));
}

void TcpEndpoint::take_end(std::size_t index) {
  Stream& stream = streams_[index];
  stream.is_ended = true;
  if (failure_) return fail(*failure_);
  if (stream.inbound || stream.begin != stream.end) {
    return fail(Error{ErrorCode::peer_failed, "the connection ended in the middle of a frame: the peer died"});
  }
  if (index == 0 && !is_peer_closing_) {
    return fail(Error{ErrorCode::peer_failed, "the connection ended without a close: the peer died or left"});
  }
  const bool is_over = std::ranges::all_of(streams_, &Stream::is_ended);
  if (is_over && !incomplete_.empty()) {
    return fail(Error{ErrorCode::peer_failed, "the connection ended in the middle of a write: the peer died"});
  }
  close_if_over();
}

void TcpEndpoint::close_if_over() noexcept {
  if (is_shut_ && std::ranges::all_of(streams_, &Stream::is_ended)) close_sockets();
}

void TcpEndpoint::discard_input() noexcept {
  std::array<std::byte, 16384> nothing;
  for (Stream& stream : streams_) {
    if (!stream.fd.is_open() || stream.is_ended) continue;
    for (int i = 0; i < 64; ++i) {  // Bounded: a peer may send faster than this reads.
      const ssize_t got = ::recv(stream.fd.get(), nothing.data(), nothing.size(), MSG_DONTWAIT);
      if (got > 0) continue;
      if (got == 0) stream.is_ended = true;
      // A reset: nothing in either direction arrives any more.
      if (got < 0 && errno != EAGAIN && errno != EINTR)
        return fail(Error::from_errno(ErrorCode::peer_failed, "leaving", errno));
      break;
    }
  }
}

}  // namespace weft::transport::tcp
