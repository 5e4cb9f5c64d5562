#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "transport/memory.h"

namespace weft::transport {

/// The caller's name for one operation; returned unchanged in its Completion.
enum class Token : std::uint64_t {};

/// Answer to a post. Back-pressure is an ordinary answer, never an error.
enum class Posted : std::uint8_t {
  started,  ///< A write or read: exactly one Completion with its Token will be polled later. A message: it is copied.
  again,    ///< No credits: nothing happened. Post again after a poll.
};

/// How a payload too large for a message crosses this link best.
enum class LargePath : std::uint8_t {
  write,  ///< The receiver names the place, the sender writes there (tcp, verbs, ofi).
  read,   ///< The sender names the place, the receiver loads or reads from there (shm).
};

/// How the memory of a peer that it did not allocate as `shared` crosses a `read` link.
enum class PlainPath : std::uint8_t {
  read,     ///< post_read works and is the faster way.
  staging,  ///< Copied through messages of at most message_size_max.
};

/// What this link can do; fixed once it is connected, and the same on both ends.
struct Capabilities {
  LargePath large_path = LargePath::write;
  PlainPath plain_path = PlainPath::staging;
  bool maps_shared_memory = false;   ///< load_pointer works for regions of kind `shared`.
  bool moves_device_memory = false;  ///< Writes and reads may name device memory on either side (GPUDirect).
  std::size_t message_size_max = 0;  ///< Header and payload of one message together.
  std::size_t eager_limit = 0;       ///< Advised: up to this payload a message is faster than a write or read.
  std::size_t slice_size = 0;        ///< Advised: pieces of this size overlap well and stay in cache.
};

/// A reliable link to one peer. Post here; poll the Transport.
///
/// Order: messages arrive in the order of their posts. The notice of a write arrives after the bytes of that write
/// are visible; writes are not ordered against each other or against messages (they may travel on several streams).
/// Errors of every call: closed — close() was called on either side; peer_failed — the link broke (sticky, first cause
/// is kept). Thread of every call: loop.
class Endpoint {
 public:
  virtual ~Endpoint() = default;

  [[nodiscard]] virtual Rank peer() const noexcept = 0;
  [[nodiscard]] virtual const Capabilities& capabilities() const noexcept = 0;

  /// Sends header and payload as one message; both may be reused on return.
  /// Shape:  header.size() + payload.size() <= message_size_max; the payload is CPU-accessible.
  [[nodiscard]] virtual Result<Posted> post_message(std::span<const std::byte> header,
                                                    std::span<const std::byte> payload) noexcept = 0;

  /// Copies `source` into the peer's memory at `destination`. With a `notice`, the peer polls a Completion
  /// carrying it, once the bytes are visible there and not before.
  /// Shape:  source.size_bytes == destination.size_bytes; zero bytes with a notice is a pure signal.
  /// Memory: `source` must stay unchanged until the Completion for `token` is polled.
  /// Errors: out_of_range — a slice leaves its region (the peer's region is checked at the peer: then peer_failed);
  ///         unsupported  — large_path is not `write` and the region is not mapped.
  [[nodiscard]] virtual Result<Posted> post_write(LocalSlice source, RemoteSlice destination,
                                                  std::optional<std::uint32_t> notice, Token token) noexcept = 0;

  /// Copies the peer's memory at `source` into `destination`.
  /// Memory: both must stay as they are until the Completion for `token` is polled.
  /// Errors: as post_write; unsupported — this link cannot read.
  [[nodiscard]] virtual Result<Posted> post_read(LocalSlice destination, RemoteSlice source, Token token) noexcept = 0;

  /// Where the peer's `shared` region can be loaded and stored by the CPU of this process; maps it on first use and
  /// keeps the mapping until the region is released or the endpoint closes.
  /// Errors: unsupported — no such capability, or this region is not shared memory; out_of_range.
  [[nodiscard]] virtual Result<std::byte*> load_pointer(RemoteSlice slice) noexcept = 0;

  /// The last word of a rank that failed and may never poll again: its memory goes back to its owner, and bytes that
  /// the peer was told to read may change. Comes before they do. What was sent before still arrives.
  /// On a link whose large path is `read` the peer polls `failed` soon after, and failure() there gives `why` (which
  /// may be cut short). One that writes has nothing to revoke, since release_memory() keeps the peer out: the peer
  /// polls `failed` if something that was posted before would wait for room here, and so would never be heard of.
  /// Memory: when it has returned, a peer that reads a byte which was written after it is told so by is_revoked().
  virtual void revoke(std::string_view why) noexcept = 0;

  /// Whether the peer revoked. To be asked after bytes were loaded from its memory (by load_pointer or a completed
  /// post_read), and before they count: true means that any of them may be of later use of that memory. Nothing more is
  /// to be done then but to poll: `failed`, or `closed` where the peer had closed before, is on its way.
  /// Cost: a load from a line that hardly ever changes.
  [[nodiscard]] virtual bool is_revoked() const noexcept = 0;

  /// Why the link is broken; nullopt while it works.
  [[nodiscard]] virtual std::optional<Error> failure() const noexcept = 0;

  /// For people: "shm (pid 4711)", "tcp 10.0.0.1:4000 -> 10.0.0.2:5000, 2 streams".
  [[nodiscard]] virtual std::string describe() const = 0;

  /// Starts an orderly end: what was posted is still delivered, new posts answer `closed`; the peer sees
  /// Completion::Kind::closed after everything that was sent before. Idempotent.
  virtual void close() noexcept = 0;
};

}  // namespace weft::transport
