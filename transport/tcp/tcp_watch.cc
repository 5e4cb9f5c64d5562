#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/out_of_memory.h"
#include "base/units.h"
#include "transport/tcp/tcp_endpoint.h"

// What the kernel knows of a TcpEndpoint's connections: what is on its way, and whether anybody answers.
namespace weft::transport::tcp {

std::uint64_t TcpEndpoint::bytes_unacknowledged() const noexcept {
  std::uint64_t sum = 0;
  for (const Stream& stream : streams_) {
    int queued = 0;
    if (!stream.fd.is_open() || ::ioctl(stream.fd.get(), SIOCOUTQ, &queued) != 0) continue;
    // A connection that is over (a peer that has left answers late bytes with a reset) acknowledges nothing any more,
    // but the kernel goes on counting.
    tcp_info info{};
    socklen_t size = sizeof info;
    const bool is_known = ::getsockopt(stream.fd.get(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
    if (is_known && info.tcpi_state == TCP_CLOSE) continue;
    sum += static_cast<std::uint64_t>(std::max(queued, 0));
  }
  return sum;
}

void TcpEndpoint::look_for_silence(Nanos now, Nanos limit) noexcept {
  if (is_broken_) return;
  for (Stream& stream : streams_) {
    tcp_info info{};
    socklen_t size = sizeof info;
    const bool is_known =
        stream.fd.is_open() && ::getsockopt(stream.fd.get(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
    if (!is_known || info.tcpi_unacked == 0) {  // A peer without room is probed, and not waited for in this way.
      stream.waiting_since.reset();
      continue;
    }
    if (!stream.waiting_since) stream.waiting_since = now;
    const Nanos last_heard = now - std::chrono::milliseconds(info.tcpi_last_ack_recv);
    if (last_heard > *stream.waiting_since) stream.waiting_since = last_heard;
    if (now - *stream.waiting_since < limit) continue;
    const auto text = or_out_of_memory([&]() -> Status {
      return Error::from_errno(ErrorCode::peer_failed,
                               fmt::format("the host of {} has acknowledged nothing for {}", peer_text(),
                                           format_duration(now - *stream.waiting_since)),
                               ETIMEDOUT, "Look whether it runs, and at the cable and the switches between");
    });
    return fail(text.error());
  }
}

}  // namespace weft::transport::tcp
