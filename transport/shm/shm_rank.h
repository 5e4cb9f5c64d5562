#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "transport/shm/doorbell.h"
#include "transport/shm/pair_handshake.h"
#include "transport/shm/shm_endpoint.h"
#include "transport/shm/shm_transport.h"

namespace weft::transport::shm {

/// One rank's side of the shm transport: its control segment, its doorbell, its links.
class ShmRank final : public Transport {
 public:
  static Result<std::unique_ptr<Transport>> create(const ShmOptions& options);
  ~ShmRank() override;

  [[nodiscard]] std::string_view name() const noexcept override { return "shm"; }
  [[nodiscard]] std::vector<std::byte> address() const override { return encode(own_.address); }
  [[nodiscard]] std::vector<Connected> connect(std::span<const PeerAddress> peers, Deadline deadline) override;
  [[nodiscard]] Endpoint* endpoint(Rank peer) noexcept override;
  [[nodiscard]] Result<Registration> register_memory(std::byte* base, std::uint64_t size_bytes,
                                                     device::MemoryKind kind) noexcept override;
  void release_memory(const Registration& registration) noexcept override;
  [[nodiscard]] std::size_t poll(std::span<Completion> out) noexcept override;
  [[nodiscard]] bool arm(Wake wake) noexcept override;
  void disarm() noexcept override { sleeper_.withdraw(); }
  [[nodiscard]] int event_fd() const noexcept override { return sleeper_.event_fd(); }
  void sleep(Nanos limit) noexcept override;

 private:
  /// Up to this many peers poll looks into each ring: a line that nobody writes stays in the first-level cache and
  /// costs about a nanosecond. With more, senders also set a byte each, and poll reads 64 of these in one line; that
  /// costs the sender a second line, so few peers do without.
  static constexpr std::size_t kDirectPeersMax = 16;

  explicit ShmRank(const ShmOptions& options) : options_(options) {}
  Status open();

  // shm_connect.cc
  Status say_hellos(std::vector<PairHandshake>& pairs);
  static void settle_all(std::vector<PairHandshake>& pairs, Deadline deadline);
  Result<Endpoint*> adopt(PairHandshake& pair);

  // shm_poll.cc
  void collect(ShmEndpoint& link, std::span<Completion> out, std::size_t& count) noexcept;
  void collect_flagged(std::span<Completion> out, std::size_t& count) noexcept;
  void collect_dead(std::span<Completion> out, std::size_t& count) noexcept;
  void return_rooms() noexcept;
  void look_for_dead() noexcept;
  void add_dead(ShmEndpoint& link) noexcept;
  void look_for_dead_seldom() noexcept;
  void stop_receiving(ShmEndpoint& link) noexcept;
  [[nodiscard]] bool has_work() const noexcept;
  [[nodiscard]] std::uint64_t pending_word(std::size_t word) const noexcept;

  ShmOptions options_;
  OwnSide own_;
  std::uint64_t probe_word_ = 0;
  Descriptor file_;
  std::uint64_t file_size_ = kHeaderSize;
  Mapping header_memory_;

  Sleeper sleeper_;
  DoneQueue done_;
  std::vector<ShmEndpoint*> direct_;                   ///< Looked at in every poll.
  std::array<ShmEndpoint*, kPeersMax> by_entry_{};     ///< Flagged peers, by their byte in `pending`.
  std::array<std::uint64_t, kPeersMax / 64> ready_{};  ///< Flagged peers whose ring may hold something.
  std::size_t num_flagged_words_ = 0;                  ///< Words of `pending` in use; 0 without flagged peers.
  std::vector<ShmEndpoint*> delivered_;                ///< Their items were given out by the last poll.
  std::vector<ShmEndpoint*> dead_;  ///< Their process ended or revoked; what it sent is still collected.
  std::size_t first_direct_ = 0;    ///< Where poll begins, so that no peer starves another.
  std::uint32_t num_polls_ = 0;
  Nanos last_look_{0};

  std::unordered_map<Rank, std::unique_ptr<ShmEndpoint>> links_;
};

}  // namespace weft::transport::shm
