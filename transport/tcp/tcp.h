#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/secret.h"
#include "transport/transport.h"

namespace weft::transport::tcp {

/// The same for links with unacknowledged data and for idle ones (15 s and 4 probes 5 s apart): a host that vanished is
/// noticed in 35 s. The kernel alone would go on for about 15 minutes (tcp_retries2), and its TCP_USER_TIMEOUT breaks a
/// link also if the peer is well and its process only busy, with a full window.
inline constexpr Nanos kSilenceMax = std::chrono::seconds(35);

struct TcpOptions {
  Rank rank;
  /// The job's secret: every connection proves it in both directions before anything it says is believed.
  Secret secret;
  /// Numeric addresses of this host, best first. It listens on these and on no other, and peers try them in this order.
  std::vector<std::string> listen_on;
  /// Connections per pair of ranks; the lower wish of both ends counts. 1 to kStreamsMax.
  std::uint32_t streams = 1;
  /// Of each socket and direction; 0 leaves it to the kernel, which adapts it.
  std::uint64_t socket_buffer_bytes = 0;
  /// A link on which data waits and the peer's host has acknowledged nothing for so long is broken. A host whose
  /// process takes nothing still answers, so this is about dead hosts and cut cables only. Idle links: see tune() in
  /// socket.cc.
  Nanos silence_max = kSilenceMax;
  /// How long the destructor waits for a closing link on which nothing moves.
  Nanos linger = std::chrono::seconds(5);
};

inline constexpr std::uint32_t kStreamsMax = 16;
inline constexpr std::size_t kEagerLimit = 64 << 10;
/// Room for a header of the user next to an eager payload.
inline constexpr std::size_t kMessageSizeMax = kEagerLimit + 256;

/// A transport over TCP sockets. It listens from here on; peers connect in Transport::connect.
/// Errors: invalid_argument — no address, or one that is not numeric; not_found — an address that is not of this host;
///         limit_exceeded — no descriptor left.
[[nodiscard]] Result<std::unique_ptr<Transport>> create_tcp(TcpOptions options);

}  // namespace weft::transport::tcp
