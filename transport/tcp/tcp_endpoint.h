#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "transport/tcp/region_table.h"
#include "transport/tcp/socket.h"
#include "transport/tcp/wire.h"
#include "transport/transport.h"

namespace weft::transport::tcp {

/// A link to one peer over one or several connections ("streams").
///
/// Messages and the close travel on stream 0, in order. A write is cut into stripes that any stream takes when it has
/// room; its first stripe goes on stream 0, so that a reader of stream 0 knows when to look at the others.
/// Payload is sent from the source and received into the destination without a copy of ours. Where a message
/// lies whole in the receive buffer it is shown there.
class TcpEndpoint final : public Endpoint {
 public:
  TcpEndpoint(Rank peer, std::vector<Fd> streams, RegionTable& regions);

  [[nodiscard]] Rank peer() const noexcept override { return peer_; }
  [[nodiscard]] const Capabilities& capabilities() const noexcept override;
  [[nodiscard]] Result<Posted> post_message(std::span<const std::byte> header,
                                            std::span<const std::byte> payload) noexcept override;
  [[nodiscard]] Result<Posted> post_write(LocalSlice source, RemoteSlice destination,
                                          std::optional<std::uint32_t> notice, Token token) noexcept override;
  [[nodiscard]] Result<Posted> post_read(LocalSlice destination, RemoteSlice source, Token token) noexcept override;
  [[nodiscard]] Result<std::byte*> load_pointer(RemoteSlice slice) noexcept override;
  void revoke(std::string_view why) noexcept override;
  [[nodiscard]] bool is_revoked() const noexcept override { return false; }  // Nothing of a peer is read.
  [[nodiscard]] std::optional<Error> failure() const noexcept override { return failure_; }
  [[nodiscard]] std::string describe() const override;
  void close() noexcept override;

  /// Sends and receives what is due, and collects what happened.
  [[nodiscard]] std::size_t poll(std::span<Completion> out) noexcept;
  /// Sends what is due.
  void flush() noexcept;
  /// Receives and forgets, so that leaving does not reset a connection that still holds data for the peer.
  void discard_input() noexcept;

  /// True if poll() has something to do that no socket tells of.
  [[nodiscard]] bool has_work() const noexcept;
  /// True if bytes wait for room in a socket.
  [[nodiscard]] bool has_backlog() const noexcept;
  /// True until everything of an orderly end was handed to the sockets (or the link is not closing).
  [[nodiscard]] bool is_closing() const noexcept { return is_closing_ && !failure_; }
  [[nodiscard]] bool is_flushing() const noexcept { return is_closing_ && !is_shut_ && !failure_; }
  /// Bytes in the sockets that the peer's kernel has not taken.
  [[nodiscard]] std::uint64_t bytes_unacknowledged() const noexcept;
  [[nodiscard]] std::uint64_t bytes_sent() const noexcept { return bytes_sent_; }

  /// Breaks the link if data waits and nothing was acknowledged for `limit`. To be asked now and then.
  void look_for_silence(Nanos now, Nanos limit) noexcept;

  /// A socket that the transport watches, for bytes to read, for room to send, or both.
  struct Watch {
    int fd;
    bool wants_input;
    bool wants_room;
    friend bool operator==(const Watch&, const Watch&) = default;
  };
  /// Appends the sockets of which something is wanted.
  void collect_watches(std::vector<Watch>& out) const;
  /// Changes whenever a socket was closed.
  [[nodiscard]] std::uint32_t sockets_version() const noexcept { return sockets_version_; }

 private:
  /// Whole frames that wait for room, copied.
  struct Chunk {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
    std::size_t sent = 0;
  };
  struct Write {
    RegionKey source_key;
    std::uint64_t source_offset = 0;
    std::uint64_t size_bytes = 0;
    RemoteSlice destination;
    std::optional<std::uint32_t> notice;
    Token token{};
    std::uint64_t handed_out = 0;    ///< Bytes that streams have taken as stripes.
    std::uint32_t stripes_open = 0;  ///< Taken and not sent.
    bool is_handed_out = false;
    bool is_sent = false;
  };
  struct Stripe {
    std::array<std::byte, sizeof(FrameWire) + sizeof(WriteWire)> header;
    std::uint32_t write_id = 0;
    std::uint64_t offset = 0;  ///< In the write.
    std::uint64_t size_bytes = 0;
    std::uint64_t sent = 0;  ///< Header and payload together.
  };
  /// A stripe whose payload is on its way into its place.
  struct Inbound {
    WriteWire write;
    bool has_notice = false;
    std::uint64_t at = 0;  ///< Where the next byte goes in the region.
    std::uint64_t left = 0;
    std::uint64_t size_bytes = 0;
  };
  struct Stream {
    Fd fd;
    std::optional<Stripe> sending;
    std::unique_ptr<std::byte[]> buffer;
    std::size_t begin = 0;  ///< Received and not yet taken: [begin, end).
    std::size_t end = 0;
    std::optional<Inbound> inbound;
    bool is_ended = false;                 ///< The peer sends nothing more.
    std::optional<Nanos> waiting_since{};  ///< When sent data was first seen to be unacknowledged.
  };
  struct Incomplete {
    std::uint64_t total = 0;
    std::uint64_t announced = 0;  ///< By the headers of its stripes.
    std::uint64_t arrived = 0;
    bool has_notice = false;
    std::uint32_t notice = 0;
  };
  /// Where poll() puts what happened.
  struct Sink {
    std::span<Completion> out;
    std::size_t count = 0;
    [[nodiscard]] bool is_full() const noexcept { return count == out.size(); }
    void put(Completion completion) noexcept { out[count++] = completion; }
  };
  enum class Progress : std::uint8_t { moved, stuck };

  [[nodiscard]] std::optional<Error> refusal() const;

  // tcp_send.cc
  void append_message(const FrameWire& frame, std::span<const std::byte> header, std::span<const std::byte> payload,
                      std::size_t already_sent);
  void flush_stream(std::size_t index, std::uint64_t budget);
  [[nodiscard]] Progress send_chunks(Stream& stream);
  [[nodiscard]] Progress send_stripe(Stream& stream);
  [[nodiscard]] bool take_stripe(std::size_t stream_index);
  void finish_stripe(const Stripe& stripe);
  [[nodiscard]] bool is_all_sent() const noexcept;
  void end_sending();
  Result<Posted> send_message(std::span<const std::byte> header, std::span<const std::byte> payload);
  void flush_streams(std::uint64_t budget) noexcept;
  void drop_backlog() noexcept;
  /// The peer takes nothing more; what it sent before is still read, then the link fails.
  void fail_sending(const Error& cause) noexcept;

  // tcp_receive.cc
  void receive_stream(std::size_t index, Sink& sink);
  [[nodiscard]] Progress parse(std::size_t index, Sink& sink);
  [[nodiscard]] Progress parse_write(Stream& stream, const FrameWire& frame, Sink& sink);
  [[nodiscard]] Progress receive_bytes(std::size_t index, Sink& sink, std::uint64_t& budget);
  void take_payload(Stream& stream, std::uint64_t size_bytes, Sink& sink);
  void finish_inbound(Stream& stream, Sink& sink);
  void take_end(std::size_t index);
  void take_receive_error(std::size_t index, int system_errno);
  void close_if_over() noexcept;

  void fail(const Error& cause) noexcept;
  /// Keeps the first cause.
  void keep_failure(const Error& cause) noexcept;
  void close_sockets() noexcept;
  [[nodiscard]] std::string peer_text() const;

  const Rank peer_;
  RegionTable& regions_;
  std::vector<Stream> streams_;
  std::string description_;

  std::deque<Chunk> chunks_;
  std::size_t chunk_bytes_ = 0;
  std::deque<Write> writes_;             ///< In order of their posts; finished ones leave from the front.
  std::uint32_t first_write_id_ = 0;     ///< Of writes_.front().
  std::uint32_t writes_handed_out_ = 0;  ///< So many of writes_ need no more stripes.
  bool stripe_is_next_ = false;          ///< Messages and stripes take turns on stream 0.
  std::deque<Token> written_;
  std::uint64_t bytes_sent_ = 0;

  std::unordered_map<std::uint32_t, Incomplete> incomplete_;
  std::uint32_t polls_ = 0;

  std::optional<Error> failure_;
  bool is_broken_ = false;  ///< Nothing more is read either: `failed` is due.
  bool is_failed_polled_ = false;
  bool is_closing_ = false;
  bool is_close_sent_ = false;    ///< The close frame left, or waits as the last chunk.
  bool is_shut_ = false;          ///< Everything and the close frame were handed to the sockets.
  bool is_peer_closing_ = false;  ///< The peer's close frame was read.
  bool is_peer_closed_polled_ = false;
  std::uint32_t sockets_version_ = 0;
};

}  // namespace weft::transport::tcp
