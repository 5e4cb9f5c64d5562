#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/out_of_memory.h"
#include "transport/tcp/limits.h"
#include "transport/tcp/tcp_endpoint.h"

// The sending half of TcpEndpoint.
namespace weft::transport::tcp {
namespace {

iovec part(const void* data, std::size_t size) noexcept { return {const_cast<void*>(data), size}; }

/// Bytes that the socket took, 0 if it has no room; below 0 is a negative errno.
ssize_t send_parts(int fd, std::span<iovec> parts) noexcept {
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  for (;;) {
    const ssize_t sent = ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return sent;
    if (errno == EAGAIN) return 0;
    if (errno != EINTR) return -errno;
  }
}

}  // namespace

Result<Posted> TcpEndpoint::post_message(std::span<const std::byte> header,
                                         std::span<const std::byte> payload) noexcept {
  return or_out_of_memory([&] { return send_message(header, payload); });
}

Result<Posted> TcpEndpoint::send_message(std::span<const std::byte> header, std::span<const std::byte> payload) {
  if (auto error = refusal()) return *error;
  const std::size_t size = header.size() + payload.size();
  if (size > kMessageSizeMax) {
    return Error{ErrorCode::out_of_range,
                 fmt::format("a message of {} bytes; tcp sends at most {}", size, kMessageSizeMax)};
  }
  const FrameWire frame{.kind = FrameKind::message, .size_bytes = static_cast<std::uint32_t>(size)};
  Stream& stream = streams_[0];
  if (!chunks_.empty() || stream.sending) {
    if (chunk_bytes_ + sizeof frame + size > kBacklogMax) return Posted::again;
    append_message(frame, header, payload, 0);
    return Posted::started;
  }
  std::array parts{part(&frame, sizeof frame), part(header.data(), header.size()),
                   part(payload.data(), payload.size())};
  const ssize_t sent = send_parts(stream.fd.get(), parts);
  if (sent < 0) {
    fail_sending(
        Error::from_errno(ErrorCode::peer_failed, "sending a message to " + peer_text(), static_cast<int>(-sent)));
    return *failure_;
  }
  bytes_sent_ += static_cast<std::uint64_t>(sent);
  if (static_cast<std::size_t>(sent) == sizeof frame + size) return Posted::started;
  try {
    append_message(frame, header, payload, static_cast<std::size_t>(sent));
  } catch (const std::bad_alloc&) {
    // A part of the frame is out, and there is no place to keep the rest.
    if (sent > 0) fail_sending(out_of_memory());
    throw;
  }
  return Posted::started;
}

void TcpEndpoint::append_message(const FrameWire& frame, std::span<const std::byte> header,
                                 std::span<const std::byte> payload, std::size_t already_sent) {
  const std::size_t size = sizeof frame + header.size() + payload.size();
  // A chunk holds whole frames, but for the part of the first one that was sent before.
  if (chunks_.empty() || chunks_.back().size + size > kChunkSize) {
    chunks_.push_back({.bytes = std::make_unique_for_overwrite<std::byte[]>(kChunkSize)});
  }
  Chunk& chunk = chunks_.back();
  std::byte* to = chunk.bytes.get() + chunk.size;
  to = std::copy_n(reinterpret_cast<const std::byte*>(&frame), sizeof frame, to);
  to = std::ranges::copy(header, to).out;
  std::ranges::copy(payload, to);
  if (already_sent > 0) chunk.sent = already_sent;  // Only into an empty queue.
  chunk.size += size;
  chunk_bytes_ += size;
}

Result<Posted> TcpEndpoint::post_write(LocalSlice source, RemoteSlice destination, std::optional<std::uint32_t> notice,
                                       Token token) noexcept {
  return or_out_of_memory([&]() -> Result<Posted> {
    if (auto error = refusal()) return *error;
    if (source.size_bytes != destination.size_bytes) {
      return Error{ErrorCode::out_of_range, "the slices of a write differ in size"};
    }
    const RegionKey source_key = source.region != nullptr ? source.region->key : RegionKey{};
    if (regions_.find(source_key, source.offset, source.size_bytes) == nullptr) {
      return Error{ErrorCode::out_of_range,
                   fmt::format("{} bytes at {} leave their registered region", source.size_bytes, source.offset)};
    }
    if (writes_.size() >= kWritesMax) return Posted::again;
    writes_.push_back({.source_key = source_key,
                       .source_offset = source.offset,
                       .size_bytes = source.size_bytes,
                       .destination = destination,
                       .notice = notice,
                       .token = token});
    // Enough to start at once what is short; poll() goes on with the rest.
    flush_streams(kStripeSize);
    if (failure_) return *failure_;
    return Posted::started;
  });
}

bool TcpEndpoint::has_backlog() const noexcept { return !is_broken_ && (!chunks_.empty() || !writes_.empty()); }

bool TcpEndpoint::is_all_sent() const noexcept { return chunks_.empty() && writes_.empty(); }

void TcpEndpoint::flush() noexcept {
  if (failure_) return;
  if (has_backlog()) flush_streams(kPollBudget);
  if (!is_closing_ || is_shut_ || failure_ || !is_all_sent()) return;
  try {
    end_sending();
  } catch (const std::bad_alloc&) {
    fail_sending(out_of_memory());
  }
}

void TcpEndpoint::flush_streams(std::uint64_t budget) noexcept {
  try {
    for (std::size_t i = 0; i < streams_.size() && !failure_; ++i) flush_stream(i, budget);
  } catch (const std::bad_alloc&) {
    fail_sending(out_of_memory());  // A write may have been sent whose end could not be noted.
  }
}

void TcpEndpoint::flush_stream(std::size_t index, std::uint64_t budget) {
  Stream& stream = streams_[index];
  const std::uint64_t end = bytes_sent_ + budget;
  while (bytes_sent_ < end && !failure_) {
    const bool has_chunks = index == 0 && !chunks_.empty();
    // What was begun goes on; else messages and stripes take turns.
    bool sends_chunks = has_chunks && !stream.sending;
    if (sends_chunks && chunks_.front().sent == 0 && stripe_is_next_ && take_stripe(index)) sends_chunks = false;
    if (!sends_chunks && !stream.sending && !take_stripe(index)) return;
    if ((sends_chunks ? send_chunks(stream) : send_stripe(stream)) == Progress::stuck) return;
  }
}

TcpEndpoint::Progress TcpEndpoint::send_chunks(Stream& stream) {
  std::array<iovec, 8> parts;
  std::size_t count = 0;
  std::size_t wanted = 0;
  for (const Chunk& chunk : chunks_) {
    if (count == parts.size()) break;
    parts[count++] = part(chunk.bytes.get() + chunk.sent, chunk.size - chunk.sent);
    wanted += chunk.size - chunk.sent;
  }
  const ssize_t result = send_parts(stream.fd.get(), std::span(parts).first(count));
  if (result < 0) {
    fail_sending(Error::from_errno(ErrorCode::peer_failed, "sending to " + peer_text(), static_cast<int>(-result)));
    return Progress::stuck;
  }
  auto sent = static_cast<std::size_t>(result);
  const bool is_all = sent == wanted;
  bytes_sent_ += sent;
  while (sent > 0) {
    Chunk& chunk = chunks_.front();
    const std::size_t of_chunk = std::min(sent, chunk.size - chunk.sent);
    chunk.sent += of_chunk;
    sent -= of_chunk;
    if (chunk.sent == chunk.size) {
      chunk_bytes_ -= chunk.size;
      chunks_.pop_front();
    }
  }
  stripe_is_next_ = true;
  return is_all ? Progress::moved : Progress::stuck;
}

bool TcpEndpoint::take_stripe(std::size_t stream_index) {
  if (writes_handed_out_ == writes_.size()) return false;
  Write& write = writes_[writes_handed_out_];
  // The first stripe goes where the peer always reads, and tells it to read the others.
  if (stream_index != 0 && write.handed_out == 0) return false;
  Stripe stripe;
  stripe.write_id = first_write_id_ + writes_handed_out_;
  stripe.offset = write.handed_out;
  stripe.size_bytes = std::min(kStripeSize, write.size_bytes - write.handed_out);
  const FrameWire frame{.kind = FrameKind::write,
                        .flags = write.notice ? kHasNotice : std::uint16_t{0},
                        .size_bytes = static_cast<std::uint32_t>(stripe.size_bytes)};
  const WriteWire head{.region_first = write.destination.key.first,
                       .region_second = write.destination.key.second,
                       .offset = write.destination.offset + stripe.offset,
                       .total_bytes = write.size_bytes,
                       .write_id = stripe.write_id,
                       .notice = write.notice.value_or(0)};
  std::memcpy(stripe.header.data(), &frame, sizeof frame);
  std::memcpy(stripe.header.data() + sizeof frame, &head, sizeof head);
  write.handed_out += stripe.size_bytes;
  ++write.stripes_open;
  if (write.handed_out == write.size_bytes) {
    write.is_handed_out = true;
    ++writes_handed_out_;
  }
  streams_[stream_index].sending = stripe;
  return true;
}

TcpEndpoint::Progress TcpEndpoint::send_stripe(Stream& stream) {
  Stripe& stripe = *stream.sending;
  const Write& write = writes_[stripe.write_id - first_write_id_];
  // Looked up each time: a region that was released meanwhile must not be read.
  const std::byte* source = regions_.find(write.source_key, write.source_offset + stripe.offset, stripe.size_bytes);
  if (source == nullptr) {
    fail_sending(Error{ErrorCode::invalid_argument, "the source of a write was released before its Completion"});
    return Progress::stuck;
  }
  std::array<iovec, 2> parts;
  std::size_t count = 0;
  const std::size_t head = stripe.header.size();
  if (stripe.sent < head) parts[count++] = part(stripe.header.data() + stripe.sent, head - stripe.sent);
  const std::uint64_t payload_sent = stripe.sent > head ? stripe.sent - head : 0;
  parts[count++] = part(source + payload_sent, stripe.size_bytes - payload_sent);
  const ssize_t sent = send_parts(stream.fd.get(), std::span(parts).first(count));
  if (sent < 0) {
    fail_sending(Error::from_errno(ErrorCode::peer_failed, "writing to " + peer_text(), static_cast<int>(-sent)));
    return Progress::stuck;
  }
  stripe.sent += static_cast<std::uint64_t>(sent);
  bytes_sent_ += static_cast<std::uint64_t>(sent);
  if (stripe.sent < head + stripe.size_bytes) return Progress::stuck;
  finish_stripe(stripe);
  stream.sending.reset();
  stripe_is_next_ = false;
  return Progress::moved;
}

void TcpEndpoint::finish_stripe(const Stripe& stripe) {
  Write& write = writes_[stripe.write_id - first_write_id_];
  --write.stripes_open;
  if (!write.is_handed_out || write.stripes_open > 0) return;
  write.is_sent = true;
  written_.push_back(write.token);
  while (!writes_.empty() && writes_.front().is_sent) {
    writes_.pop_front();
    ++first_write_id_;
    --writes_handed_out_;
  }
}

void TcpEndpoint::end_sending() {
  if (!is_close_sent_) {
    is_close_sent_ = true;
    const FrameWire frame{.kind = FrameKind::close};
    std::array parts{part(&frame, sizeof frame)};
    const ssize_t sent = send_parts(streams_[0].fd.get(), parts);
    // A peer that is gone already says in what it sent before whether that was in order: reading goes on.
    if (sent >= 0 && static_cast<std::size_t>(sent) < sizeof frame) {
      append_message(frame, {}, {}, static_cast<std::size_t>(sent));
      return;
    }
  }
  for (Stream& stream : streams_) {
    if (stream.fd.is_open()) (void)::shutdown(stream.fd.get(), SHUT_WR);
  }
  is_shut_ = true;
  close_if_over();
}

void TcpEndpoint::fail_sending(const Error& cause) noexcept {
  keep_failure(cause);
  drop_backlog();
}

void TcpEndpoint::drop_backlog() noexcept {
  for (Stream& stream : streams_) stream.sending.reset();
  chunks_.clear();
  chunk_bytes_ = 0;
  writes_.clear();
  writes_handed_out_ = 0;
}

void TcpEndpoint::revoke(std::string_view /*why*/) noexcept {
  if (failure_ || is_closing_) return;
  flush();
  if (failure_ || is_all_sent()) return;
  // Nobody may ever hand the rest over. Without it, the peer reads what its side of the connection holds, and then the
  // end.
  drop_backlog();
  is_closing_ = is_shut_ = true;
  for (Stream& stream : streams_) {
    if (stream.fd.is_open()) (void)::shutdown(stream.fd.get(), SHUT_WR);
  }
}

}  // namespace weft::transport::tcp
