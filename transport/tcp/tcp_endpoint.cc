#include "transport/tcp/tcp_endpoint.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/log.h"
#include "base/out_of_memory.h"
#include "transport/tcp/limits.h"
#include "transport/tcp/tcp.h"

namespace weft::transport::tcp {

TcpEndpoint::TcpEndpoint(Rank peer, std::vector<Fd> streams, RegionTable& regions) : peer_(peer), regions_(regions) {
  description_ =
      fmt::format("tcp {} -> {}, {} stream{}", SocketAddress::local_of(streams[0].get()).text(),
                  SocketAddress::peer_of(streams[0].get()).text(), streams.size(), streams.size() == 1 ? "" : "s");
  for (Fd& fd : streams) {
    Stream& stream = streams_.emplace_back();
    stream.fd = std::move(fd);
    stream.buffer = std::make_unique_for_overwrite<std::byte[]>(kReceiveBuffer);
  }
}

const Capabilities& TcpEndpoint::capabilities() const noexcept {
  static const Capabilities kCapabilities{.large_path = LargePath::write,
                                          .plain_path = PlainPath::staging,
                                          .maps_shared_memory = false,
                                          .moves_device_memory = false,
                                          .message_size_max = kMessageSizeMax,
                                          .eager_limit = kEagerLimit,
                                          .slice_size = kStripeSize};
  return kCapabilities;
}

std::string TcpEndpoint::describe() const { return description_; }

std::optional<Error> TcpEndpoint::refusal() const {
  if (failure_) return failure_;
  if (is_closing_) return Error{ErrorCode::closed, "post after close()"}.about(peer_);
  if (is_peer_closed_polled_) return Error{ErrorCode::closed, "the peer closed the link"}.about(peer_);
  return std::nullopt;
}

Result<Posted> TcpEndpoint::post_read(LocalSlice, RemoteSlice, Token) noexcept {
  return or_out_of_memory([&]() -> Result<Posted> {
    if (auto error = refusal()) return *error;
    return Error{ErrorCode::unsupported, "tcp does not read from a peer: it writes"};
  });
}

Result<std::byte*> TcpEndpoint::load_pointer(RemoteSlice) noexcept {
  return or_out_of_memory([&]() -> Result<std::byte*> {
    if (auto error = refusal()) return *error;
    return Error{ErrorCode::unsupported, "tcp does not map a peer's memory"};
  });
}

void TcpEndpoint::close() noexcept {
  if (is_closing_ || failure_) return;
  is_closing_ = true;
  flush();
}

std::size_t TcpEndpoint::poll(std::span<Completion> out) noexcept {
  Sink sink{out};
  ++polls_;
  flush();
  while (!written_.empty() && !sink.is_full()) {
    sink.put({.kind = Completion::Kind::written, .peer = peer_, .token = written_.front()});
    written_.pop_front();
  }
  if (!is_broken_) {
    // Without a stripe on the way the other streams are silent but for their end, which can wait.
    const bool reads_all = !incomplete_.empty() || polls_ % kIdleStreamPolls == 0 || is_peer_closing_ || failure_;
    try {
      for (std::size_t i = 0; i < streams_.size() && !is_broken_ && !sink.is_full(); ++i) {
        if (i == 0 || reads_all || !incomplete_.empty() || streams_[i].inbound) receive_stream(i, sink);
      }
    } catch (const std::bad_alloc&) {
      fail(out_of_memory());
    }
  }
  if (is_peer_closing_ && !is_peer_closed_polled_ && !is_broken_ && incomplete_.empty() && !sink.is_full()) {
    is_peer_closed_polled_ = true;
    sink.put({.kind = Completion::Kind::closed, .peer = peer_});
  }
  if (is_broken_ && !is_failed_polled_ && !sink.is_full() && written_.empty()) {
    is_failed_polled_ = true;
    sink.put({.kind = Completion::Kind::failed, .peer = peer_});
  }
  return sink.count;
}

bool TcpEndpoint::has_work() const noexcept {
  if (!written_.empty() || (is_broken_ && !is_failed_polled_)) return true;
  if (is_broken_) return false;
  if (is_peer_closing_ && !is_peer_closed_polled_ && incomplete_.empty()) return true;
  // A whole frame lies in a buffer if poll() had no room for what it says.
  return std::ranges::any_of(streams_, [](const Stream& stream) {
    FrameWire frame;
    const std::size_t held = stream.end - stream.begin;
    if (held < sizeof frame || stream.inbound) return false;
    std::memcpy(&frame, stream.buffer.get() + stream.begin, sizeof frame);
    if (frame.kind == FrameKind::write) return held >= sizeof frame + sizeof(WriteWire);
    return held >= sizeof frame + frame.size_bytes;
  });
}

void TcpEndpoint::collect_watches(std::vector<Watch>& out) const {
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    const Stream& stream = streams_[i];
    if (!stream.fd.is_open()) continue;
    // A stripe that no stream has taken yet is for each of them, but its first part is for stream 0.
    const bool has_stripe =
        writes_handed_out_ < writes_.size() && (i == 0 || writes_[writes_handed_out_].handed_out > 0);
    const bool wants_room = stream.sending || has_stripe || (i == 0 && !chunks_.empty());
    // After the peer's end a socket stays readable forever.
    const Watch watch{stream.fd.get(), !stream.is_ended, wants_room};
    if (watch.wants_input || watch.wants_room) out.push_back(watch);
  }
}

void TcpEndpoint::fail(const Error& cause) noexcept {
  is_broken_ = true;
  keep_failure(cause);
  close_sockets();
  chunks_.clear();
  chunk_bytes_ = 0;
  writes_.clear();
  writes_handed_out_ = 0;
  incomplete_.clear();
}

void TcpEndpoint::keep_failure(const Error& cause) noexcept {
  if (failure_) return;
  failure_ = cause.about(peer_);
  try {
    log::info("the link {} broke: {}", description_, failure_->message());
  } catch (const std::bad_alloc&) {  // The line is lost; the failure is kept.
  }
}

void TcpEndpoint::close_sockets() noexcept {
  for (Stream& stream : streams_) {
    stream.fd.reset();
    stream.sending.reset();
    stream.inbound.reset();
  }
  ++sockets_version_;
}

}  // namespace weft::transport::tcp
