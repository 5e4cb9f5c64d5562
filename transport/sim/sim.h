#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/random.h"
#include "transport/transport.h"

namespace weft::transport::sim {

class SimTransport;
class SimEndpoint;

/// What goes wrong on the simulated links, drawn from the seed.
struct Faults {
  Nanos delay{0};                        ///< Each delivery takes 1 ns and a random time up to this.
  std::uint32_t stall_percent = 0;       ///< So many deliveries take a hundred times as long.
  std::uint32_t post_again_percent = 0;  ///< So many posts answer Posted::again for no reason.
};

struct SimOptions {
  std::uint32_t ranks = 2;
  std::uint64_t seed = 1;
  Faults faults{};
  /// What the links say of themselves, and hold their users to.
  Capabilities link{.message_size_max = 4096 + 64, .eager_limit = 4096, .slice_size = 64 << 10};
  /// Messages that the peer has not polled yet; writes and reads that are not complete. Above: Posted::again.
  std::uint32_t in_flight_max = 256;
  /// A released region can still be read by peers, as plain memory over shm can: its key is nothing but an address.
  bool keys_outlive_release = false;
  /// Moves bytes where a side is device memory (link.moves_device_memory). Default: memcpy.
  std::function<void(std::byte* to, const std::byte* from, std::size_t size_bytes)> copy_device{};
};

/// N ranks in one thread with virtual time: the same seed and the same calls give the same interleaving.
///
/// A transport does nothing by itself. step() lets the next event happen (a delivery, a completion, a death); what it
/// caused is then found by poll(). A write takes its bytes from the source at a random time after the post, and puts
/// them into the destination at a later one: reuse of a source before its Completion, and use of a destination before
/// its notice, show as wrong results. `written` may come before or after the bytes arrived, as on real links.
/// A message that was polled is overwritten at the next poll.
/// Thread: one thread for the cluster and all its transports.
class SimCluster {
 public:
  explicit SimCluster(SimOptions options);
  ~SimCluster();
  SimCluster(const SimCluster&) = delete;
  SimCluster& operator=(const SimCluster&) = delete;

  [[nodiscard]] Transport& transport(Rank rank) noexcept;
  [[nodiscard]] const SimOptions& options() const noexcept { return options_; }
  [[nodiscard]] const Clock& clock() const noexcept { return clock_; }

  /// Connects every pair. Not needed if each rank calls connect itself.
  void connect_all();

  /// Advances time to the next event and lets it happen. False: there is none.
  bool step();
  /// Lets everything happen that is due within `by`; time has then advanced by exactly that.
  void advance(Nanos by);
  /// True if nothing is in flight and every completion was polled.
  [[nodiscard]] bool is_idle() const noexcept;

  /// The rank dies now: what was delivered stays, what is in flight is lost, and its peers see `failed` a little later.
  void kill(Rank rank);
  void kill_after(Rank rank, Nanos wait);
  /// Breaks one link now, for both ends; a pair that is cut before it connects cannot connect.
  void cut(Rank a, Rank b);

  /// What crossed the links so far.
  struct Traffic {
    std::uint64_t messages = 0;
    std::uint64_t message_bytes = 0;
    std::uint64_t writes = 0;
    std::uint64_t write_bytes = 0;
    std::uint64_t reads = 0;
    std::uint64_t read_bytes = 0;
  };
  [[nodiscard]] const Traffic& traffic() const noexcept { return traffic_; }

 private:
  friend class SimTransport;
  friend class SimEndpoint;

  class VirtualClock final : public Clock {
   public:
    [[nodiscard]] Nanos now() const noexcept override { return time; }
    Nanos time{0};
  };
  struct Event {
    Nanos at;
    std::uint64_t tie;  ///< Random: events of one instant happen in any order.
    std::function<void()> run;
    bool operator<(const Event& other) const noexcept {  // priority_queue gives the greatest first.
      return at != other.at ? at > other.at : tie > other.tie;
    }
  };

  /// A random time of one delivery from now on.
  [[nodiscard]] Nanos draw_arrival();
  void schedule(Nanos at, std::function<void()> run);
  void copy(std::byte* to, device::MemoryKind to_kind, const std::byte* from, device::MemoryKind from_kind,
            std::size_t size_bytes) const;

  SimOptions options_;
  Random random_;
  VirtualClock clock_;
  std::priority_queue<Event> events_;
  std::vector<std::unique_ptr<SimTransport>> transports_;
  Traffic traffic_;
};

}  // namespace weft::transport::sim
