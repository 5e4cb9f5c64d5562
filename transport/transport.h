#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "transport/endpoint.h"
#include "transport/memory.h"

namespace weft::transport {

/// Something that happened on a link. A value that is polled, never a callback.
struct Completion {
  enum class Kind : std::uint8_t {
    written,  ///< The write with `token` is complete here: its source may change.
    read,     ///< The read with `token` is complete: its destination holds the bytes.
    message,  ///< `message` arrived (header and payload as posted, one after the other).
    notice,   ///< A peer's write with `notice` is visible in this process's memory.
    closed,   ///< The peer closed in order; nothing more will come from it.
    failed,   ///< The link broke; endpoint(peer)->failure() says why. Posted tokens will not complete.
  };
  Kind kind = Kind::failed;
  Rank peer;
  std::uint32_t notice = 0;
  Token token{};
  std::span<const std::byte> message{};  ///< Valid until the next poll() of the same transport.
};

/// What a peer published for this transport (Transport::address), as received through the bootstrap.
struct PeerAddress {
  Rank peer;
  std::vector<std::byte> address;
};

/// What became of one peer in Transport::connect.
struct Connected {
  Rank peer;
  Result<Endpoint*> endpoint;  ///< Owned by the transport. An error says why this transport cannot serve the pair.
};

/// How a caller is going to sleep.
enum class Wake : std::uint8_t {
  by_sleep,     ///< In Transport::sleep, which may use the cheapest way (futex).
  by_event_fd,  ///< In poll/epoll on event_fd(), together with other transports.
};

/// One way to move bytes between this rank and others. Thread of every call: loop, unless stated.
class Transport {
 public:
  virtual ~Transport() = default;

  /// "shm", "tcp", "sim", ...
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;

  /// What peers need to connect here; give it to them through an authenticated exchange.
  [[nodiscard]] virtual std::vector<std::byte> address() const = 0;

  /// Connects to all `peers`, each of which calls connect with this rank at about the same time. Identity and
  /// reachability are proven by a probe, never taken from a name.
  /// Shape:  one Connected per peer, in the order given. An unreachable peer is not an error of the call.
  /// Thread: blocking, until every peer is settled or the deadline passes (then its entry is a timeout error).
  [[nodiscard]] virtual std::vector<Connected> connect(std::span<const PeerAddress> peers, Deadline deadline) = 0;

  /// The endpoint of a connected peer, or null.
  [[nodiscard]] virtual Endpoint* endpoint(Rank peer) noexcept = 0;

  /// Makes memory known to this transport so that slices of it can be posted and named by peers.
  /// Cost:   a table entry (shm, tcp); a cached registration (verbs, ofi).
  /// Errors: limit_exceeded, unsupported (a kind that this transport cannot move).
  [[nodiscard]] virtual Result<Registration> register_memory(std::byte* base, std::uint64_t size_bytes,
                                                             device::MemoryKind kind) noexcept = 0;
  virtual void release_memory(const Registration& registration) noexcept = 0;

  /// Does the work that is due and collects what happened, at most out.size() completions. Never blocks.
  [[nodiscard]] virtual std::size_t poll(std::span<Completion> out) noexcept = 0;

  /// Prepares to sleep. False: something is there already, poll instead. After true, the next event wakes the sleeper.
  [[nodiscard]] virtual bool arm(Wake wake) noexcept = 0;
  /// Ends what arm began. Idempotent.
  virtual void disarm() noexcept = 0;
  /// Readable after an event that follows arm(Wake::by_event_fd); level-triggered until poll() ran.
  [[nodiscard]] virtual int event_fd() const noexcept = 0;
  /// Blocks until an event or until `limit` passed; only between arm(Wake::by_sleep) and disarm.
  virtual void sleep(Nanos limit) noexcept = 0;
};

}  // namespace weft::transport
