#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/sim/sim.h"

namespace weft::transport::sim {

/// A LocalSlice that outlives the caller's Registration object.
struct Pinned {
  explicit Pinned(const LocalSlice& slice)
      : region(slice.region != nullptr ? *slice.region : Registration{}),
        offset(slice.offset),
        size_bytes(slice.size_bytes) {}
  [[nodiscard]] std::byte* data() const noexcept { return region.base + offset; }

  Registration region;
  std::uint64_t offset;
  std::uint64_t size_bytes;
};

/// One direction pair of a simulated link, as one rank sees it.
class SimEndpoint final : public Endpoint {
 public:
  SimEndpoint(SimCluster& cluster, SimTransport& home, Rank peer) : cluster_(cluster), home_(home), peer_(peer) {}

  [[nodiscard]] Rank peer() const noexcept override { return peer_; }
  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return cluster_.options_.link; }
  [[nodiscard]] Result<Posted> post_message(std::span<const std::byte> header,
                                            std::span<const std::byte> payload) noexcept override;
  [[nodiscard]] Result<Posted> post_write(LocalSlice source, RemoteSlice destination,
                                          std::optional<std::uint32_t> notice, Token token) noexcept override;
  [[nodiscard]] Result<Posted> post_read(LocalSlice destination, RemoteSlice source, Token token) noexcept override;
  [[nodiscard]] Result<std::byte*> load_pointer(RemoteSlice slice) noexcept override;
  void revoke(std::string_view why) noexcept override;
  [[nodiscard]] bool is_revoked() const noexcept override { return is_revoked_; }
  [[nodiscard]] std::optional<Error> failure() const noexcept override { return failure_; }
  [[nodiscard]] std::string describe() const override;
  void close() noexcept override;

 private:
  friend class SimCluster;
  friend class SimTransport;

  /// Why nothing can be posted, if so.
  [[nodiscard]] std::optional<Error> refusal() const;
  [[nodiscard]] bool is_pressed(std::uint32_t in_flight);
  /// Lets `run` happen at `at`, unless the link is cut before.
  void deliver(Nanos at, std::function<void()> run);
  void finish_write(const std::vector<std::byte>& bytes, RemoteSlice destination, std::optional<std::uint32_t> notice);
  /// Cuts the link: this end fails at once with `cause`, the other a little later.
  void fail(const Error& cause);
  void fail_later(const Error& cause);
  void take_failure(const Error& cause);
  [[nodiscard]] SimTransport& far() const noexcept;
  [[nodiscard]] SimEndpoint& twin() const noexcept;

  SimCluster& cluster_;
  SimTransport& home_;
  const Rank peer_;
  bool is_connected_ = false;
  bool is_cut_ = false;      ///< Deliveries in flight are lost.
  bool is_closing_ = false;  ///< close() was called here.
  bool is_closed_ = false;   ///< The peer's close arrived.
  bool has_revoked_ = false;
  bool is_revoked_ = false;  ///< By the peer.
  std::optional<Error> failure_;
  Nanos last_message_{0};  ///< Messages arrive in order: the next one after this.
  Nanos last_arrival_{0};  ///< The end of everything posted so far; a close arrives after it.
  std::uint32_t messages_unpolled_ = 0;
  std::uint32_t transfers_in_flight_ = 0;
};

/// One simulated rank.
class SimTransport final : public Transport {
 public:
  SimTransport(SimCluster& cluster, Rank rank);
  ~SimTransport() override;

  [[nodiscard]] std::string_view name() const noexcept override { return "sim"; }
  [[nodiscard]] std::vector<std::byte> address() const override;
  [[nodiscard]] std::vector<Connected> connect(std::span<const PeerAddress> peers, Deadline deadline) override;
  [[nodiscard]] Endpoint* endpoint(Rank peer) noexcept override;
  [[nodiscard]] Result<Registration> register_memory(std::byte* base, std::uint64_t size_bytes,
                                                     device::MemoryKind kind) noexcept override;
  void release_memory(const Registration& registration) noexcept override;
  [[nodiscard]] std::size_t poll(std::span<Completion> out) noexcept override;
  [[nodiscard]] bool arm(Wake wake) noexcept override;
  void disarm() noexcept override;
  [[nodiscard]] int event_fd() const noexcept override { return event_fd_; }
  /// Lets virtual time pass until an event concerns this rank, or by `limit`.
  void sleep(Nanos limit) noexcept override;

 private:
  friend class SimCluster;
  friend class SimEndpoint;

  struct Happened {
    Completion completion;
    std::vector<std::byte> message;
  };

  [[nodiscard]] Status connect_one(const PeerAddress& peer);
  /// The region that holds all of the slice, or null.
  [[nodiscard]] const Registration* find(const RemoteSlice& slice) const noexcept;
  [[nodiscard]] Status check(const Pinned& slice) const;
  [[nodiscard]] bool is_registered(const Pinned& slice) const noexcept;
  void push(Completion completion, std::vector<std::byte> message = {});

  SimCluster& cluster_;
  const Rank rank_;
  std::vector<std::unique_ptr<SimEndpoint>> endpoints_;  ///< By peer; made early, shown once connected.
  std::map<std::uint64_t, Registration> regions_;        ///< By key.first.
  std::map<std::uint64_t, Registration> released_;       ///< Only if keys outlive their release.
  std::uint64_t last_region_ = 0;
  std::deque<Happened> happened_;
  std::vector<Happened> early_;  ///< From peers that connected before this rank did.
  std::vector<std::vector<std::byte>> polled_messages_;
  bool is_armed_ = false;
  int event_fd_ = -1;
};

}  // namespace weft::transport::sim
