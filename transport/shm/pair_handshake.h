#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "transport/shm/address.h"
#include "transport/shm/shm_endpoint.h"
#include "transport/shm/shm_transport.h"

namespace weft::transport::shm {

/// What every handshake of one transport needs to know about its own side.
struct OwnSide {
  Rank rank;
  Address address;
  PlainCopy plain_copy = PlainCopy::automatic;
  bool has_barrier = false;
  int bell_fd = -1;
  ControlHeader* header = nullptr;
  const std::uint64_t* probe_word = nullptr;  ///< In private memory.
};

/// The way of one pair from two addresses to a link that is proven in both directions, or to a reason why not.
///
///   reach      open the peer's process and segment, read its token back
///   say_hello  into the peer's segment: proof, where its ring to us lies, a probe word
///   step...    the peer's hello -> map our ring to it, read its probe word -> verdict; both verdicts -> one decision
///
/// Both sides end with the same result: the last step is one compare-and-exchange on a word that both map.
class PairHandshake {
 public:
  PairHandshake(const OwnSide& own, Rank peer) : own_(own) { parts_.peer = peer; }

  /// Errors: unsupported — another host, another container, no permission: the step that failed is named.
  Status reach(std::span<const std::byte> address);

  /// The ring for the peer's messages lies in the own segment at `ring_offset` and is mapped at `memory`.
  Status say_hello(Mapping memory, std::uint64_t ring_offset, RingGeometry geometry, bool is_flagged);

  /// Goes as far as it can now. True: settled, result() may be taken.
  bool step(bool is_deadline_passed) noexcept;

  /// Gives up for a reason of this side, and lets the peer know as far as it can be reached.
  void refuse(Error error) noexcept;

  [[nodiscard]] bool is_settled() const noexcept { return stage_ == Stage::settled; }
  [[nodiscard]] Rank peer() const noexcept { return parts_.peer; }
  [[nodiscard]] Result<LinkParts> take_result();

 private:
  enum class Stage : std::uint8_t { unreached, reached, waiting_for_hello, waiting_for_verdict, settled };

  [[nodiscard]] ControlHeader& peer_header() const noexcept {
    return *reinterpret_cast<ControlHeader*>(parts_.peer_header.data());
  }
  Status reach_process();
  [[nodiscard]] bool has_died() const noexcept;
  bool find_hello() noexcept;
  Status judge();
  bool probe_plain_read() const noexcept;
  [[nodiscard]] std::atomic<std::uint32_t>& decision() const noexcept;
  [[nodiscard]] std::optional<Error> trouble(bool is_deadline_passed) noexcept;
  void settle(std::optional<Error> error) noexcept;
  void decide(std::optional<Error> error) noexcept;
  [[nodiscard]] std::string peer_name() const;

  const OwnSide& own_;
  Stage stage_ = Stage::unreached;
  Address peer_address_;
  PairProof own_proof_{};       ///< Written by this side.
  PairProof peer_proof_{};      ///< Expected from the peer.
  HelloWire* said_ = nullptr;   ///< This side's hello, in the peer's segment.
  HelloWire* heard_ = nullptr;  ///< The peer's hello, in the own segment.
  LinkParts parts_;
  std::optional<Error> error_;
};

}  // namespace weft::transport::shm
