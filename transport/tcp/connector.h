#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "transport/tcp/introduction.h"
#include "transport/tcp/socket.h"
#include "transport/transport.h"

struct pollfd;

namespace weft::transport::tcp {

/// What a peer published: who it is, how many streams it wishes, where it listens.
struct Published {
  TransportId id{};
  std::uint32_t num_streams = 1;
  std::vector<SocketAddress> addresses{};

  [[nodiscard]] std::vector<std::byte> encode() const;
  static Result<Published> decode(std::span<const std::byte> bytes);
};

/// Connections of peers that called and proved who they are. They may come before this rank asks for them.
struct Arrivals {
  struct Caller {
    TransportId id{};
    std::vector<Fd> streams;  ///< By index; all of them present = complete.
    [[nodiscard]] bool is_complete() const noexcept;
  };
  std::map<Rank, Caller> callers;
};

/// Connects to many peers at once: of each pair the lower rank calls, the higher answers. One blocking poll loop.
///
/// A call tries the peer's addresses in their order, each a little after the one before if that has not succeeded; the
/// first on which the right process answers is used and the others are dropped. So an address that leads to another
/// process (a private network that exists on both hosts) or into a void costs a moment, not the deadline.
class Connector {
 public:
  Connector(const Self& self, const Published& own, std::span<const Fd> listeners, Arrivals& arrivals,
            std::uint64_t buffer_bytes)
      : self_(self), own_(own), listeners_(listeners), arrivals_(arrivals), buffer_bytes_(buffer_bytes) {}

  struct Outcome {
    Rank peer;
    Result<std::vector<Fd>> streams;
  };
  /// One outcome per peer, in the order given. Thread: blocking.
  [[nodiscard]] std::vector<Outcome> run(std::span<const PeerAddress> peers, Deadline deadline);

 private:
  struct Attempt {
    Introduction introduction;
    std::size_t address_index;
    std::uint32_t stream_index;
  };
  struct Peer {
    Rank rank;
    Published published;
    std::uint32_t num_streams = 1;
    bool is_caller = false;  ///< This rank calls it.
    std::vector<Attempt> attempts;
    std::size_t next_address = 0;
    int round = 0;
    Nanos next_at{0};
    std::vector<Fd> streams;
    std::vector<std::string> notes;  ///< What happened on each address, for the error.
    std::optional<Result<std::vector<Fd>>> outcome;
  };

  [[nodiscard]] Status prepare(Peer& peer, const PeerAddress& address) const;
  void start_due_attempts(Peer& peer);
  void start_attempt(Peer& peer, std::size_t address_index, std::uint32_t stream_index);
  void settle_attempts(Peer& peer);
  void note(Peer& peer, std::size_t address_index, const Error& error) const;
  void accept_callers(int listener);
  void settle_strangers();
  void collect_arrival(Peer& peer);
  void wait(std::span<Peer> peers, Deadline deadline);
  [[nodiscard]] Error no_way(const Peer& peer, ErrorCode code) const;

  const Self& self_;
  const Published& own_;
  std::span<const Fd> listeners_;
  Arrivals& arrivals_;
  std::uint64_t buffer_bytes_;
  std::vector<Introduction> strangers_;
  bool accept_is_paused_ = false;
};

}  // namespace weft::transport::tcp
