#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "transport/endpoint.h"
#include "transport/shm/done_queue.h"
#include "transport/shm/doorbell.h"
#include "transport/shm/peer_segments.h"
#include "transport/shm/ring.h"

namespace weft::transport::shm {

/// What the handshake of a pair leaves: everything that an endpoint needs, proven to work in both directions.
struct LinkParts {
  Rank peer;
  std::uint32_t pid = 0;
  std::uint32_t entry_index = 0;  ///< Of the peer in this side's tables (its byte in `pending`).
  bool is_flagged = false;        ///< The peer sets that byte; else its ring is looked at in every poll.
  PlainPath plain_path = PlainPath::staging;
  Descriptor process;  ///< A pidfd.
  Mapping peer_header;
  Mapping inbound_memory;
  RingGeometry inbound_geometry;
  Mapping outbound_memory;
  RingGeometry outbound_geometry;
  std::atomic<std::uint8_t>* pending_byte = nullptr;  ///< At the peer, to set after each message; or null.
  Bell bell;
  HelloWire* said = nullptr;         ///< This side's, in the peer's header.
  const HelloWire* heard = nullptr;  ///< The peer's, in the own header, which outlives the endpoint.
  ProcessToken peer_process{};
};

/// The link to one process of this host.
class ShmEndpoint final : public Endpoint {
 public:
  ShmEndpoint(LinkParts parts, DoneQueue& done);

  [[nodiscard]] Rank peer() const noexcept override { return parts_.peer; }
  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return capabilities_; }
  [[nodiscard]] Result<Posted> post_message(std::span<const std::byte> header,
                                            std::span<const std::byte> payload) noexcept override;
  [[nodiscard]] Result<Posted> post_write(LocalSlice source, RemoteSlice destination,
                                          std::optional<std::uint32_t> notice, Token token) noexcept override;
  [[nodiscard]] Result<Posted> post_read(LocalSlice destination, RemoteSlice source, Token token) noexcept override;
  [[nodiscard]] Result<std::byte*> load_pointer(RemoteSlice slice) noexcept override;
  void revoke(std::string_view why) noexcept override;
  [[nodiscard]] bool is_revoked() const noexcept override { return revoked() != HelloWire::no; }
  [[nodiscard]] std::optional<Error> failure() const noexcept override { return failure_; }
  [[nodiscard]] std::string describe() const override;
  void close() noexcept override;

  // For the transport that owns this endpoint.

  RingReader reader;
  /// Items of `reader` lie open to the caller of poll.
  bool has_delivered = false;

  [[nodiscard]] std::uint32_t entry_index() const noexcept { return parts_.entry_index; }
  [[nodiscard]] bool is_flagged() const noexcept { return parts_.is_flagged; }
  [[nodiscard]] const Descriptor& process() const noexcept { return parts_.process; }
  [[nodiscard]] std::uint32_t pid() const noexcept { return parts_.pid; }
  /// More may come from the peer.
  [[nodiscard]] bool is_receiving() const noexcept { return !peer_closed_ && !failure_; }
  [[nodiscard]] bool has_room_after_refusal() const noexcept { return writer_.has_room_after_refusal(); }
  /// Ends what has_delivered says: the room goes back to the peer.
  void return_room() noexcept;
  void set_peer_closed() noexcept;
  /// The transport goes away: the peer's link fails unless this end had closed.
  void abandon() noexcept;
  /// The peer was first seen to have revoked at `then` or before. To be asked now and then.
  [[nodiscard]] bool is_revoked_since(Nanos then) noexcept {
    if (!is_revoked()) return false;
    if (!revoked_seen_) revoked_seen_ = steady_clock().now();
    return *revoked_seen_ <= then;
  }
  /// The peer revoked while it had the link open: its last word is not an end in order.
  [[nodiscard]] bool is_revoked_while_open() const noexcept { return revoked() == HelloWire::before_close; }
  /// What the peer gave as its reason. Precondition: is_revoked().
  [[nodiscard]] Error revocation() const;
  /// Keeps the first cause.
  void fail(Error cause) noexcept;

 private:
  /// Why nothing can be posted.
  [[nodiscard]] Error refusal() const noexcept;
  [[nodiscard]] Error too_long(std::size_t size_bytes) const noexcept;
  [[nodiscard]] bool is_open() const noexcept { return is_open_; }
  /// The reader's half of what revoke() derives.
  [[nodiscard]] std::uint32_t revoked() const noexcept {
    std::atomic_thread_fence(std::memory_order_acquire);
    return parts_.heard->revoked.load(std::memory_order_acquire);
  }
  void leave(LineKind last_word) noexcept;
  void after_publish() noexcept;
  Status check(const LocalSlice& local, const RemoteSlice& remote, const KeyContent& key) const;
  Result<Posted> read_plain(std::byte* destination, std::uint64_t address, std::uint64_t size_bytes);
  Result<Posted> answer_of_dying();

  RingWriter writer_;
  bool is_open_ = true;    ///< Not closed by either side, not failed.
  bool has_left_ = false;  ///< The last word was written.
  bool peer_closed_ = false;
  LinkParts parts_;
  DoneQueue& done_;
  Capabilities capabilities_;
  PeerSegments segments_;
  std::optional<Error> failure_;
  std::optional<Nanos> revoked_seen_;
  std::optional<Nanos> dying_since_;
};

}  // namespace weft::transport::shm
