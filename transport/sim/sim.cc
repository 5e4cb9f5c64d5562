#include "transport/sim/sim.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "transport/sim/sim_transport.h"

namespace weft::transport::sim {

SimCluster::SimCluster(SimOptions options) : options_(std::move(options)), random_(options_.seed) {
  WEFT_CHECK(options_.ranks >= 1, "a cluster has at least one rank");
  WEFT_CHECK(options_.link.message_size_max >= 64, "a message has room for a header");
  for (std::uint32_t rank = 0; rank < options_.ranks; ++rank) {
    transports_.push_back(std::make_unique<SimTransport>(*this, Rank{rank}));
  }
}

SimCluster::~SimCluster() = default;

Transport& SimCluster::transport(Rank rank) noexcept {
  WEFT_CHECK(rank.index() < transports_.size(), "the rank is one of the cluster");
  return *transports_[rank.index()];
}

void SimCluster::connect_all() {
  for (const auto& transport : transports_) {
    std::vector<PeerAddress> peers;
    for (const auto& peer : transports_) {
      if (peer != transport) peers.push_back({peer->rank_, peer->address()});
    }
    (void)transport->connect(peers, Deadline::never());  // A pair that was cut stays without endpoints.
  }
}

bool SimCluster::step() {
  if (events_.empty()) return false;
  Event event = events_.top();
  events_.pop();
  clock_.time = std::max(clock_.time, event.at);
  event.run();
  return true;
}

void SimCluster::advance(Nanos by) {
  const Nanos end = clock_.time + by;
  while (!events_.empty() && events_.top().at <= end) step();
  clock_.time = end;
}

bool SimCluster::is_idle() const noexcept {
  return events_.empty() && std::ranges::all_of(transports_, [](const auto& t) { return t->happened_.empty(); });
}

void SimCluster::kill(Rank rank) {
  for (const auto& transport : transports_) {
    if (transport->rank_ != rank) cut(rank, transport->rank_);
  }
}

void SimCluster::kill_after(Rank rank, Nanos wait) {
  schedule(clock_.time + wait, [this, rank] { kill(rank); });
}

void SimCluster::cut(Rank a, Rank b) {
  WEFT_CHECK(a.index() < transports_.size() && b.index() < transports_.size() && a != b, "both ends are ranks");
  SimEndpoint& end = *transports_[a.index()]->endpoints_[b.index()];
  if (end.is_cut_) return;
  end.is_cut_ = end.twin().is_cut_ = true;
  end.fail_later(Error{ErrorCode::peer_failed, "the simulated link broke"});
  end.twin().fail_later(Error{ErrorCode::peer_failed, "the simulated link broke"});
}

Nanos SimCluster::draw_arrival() {
  const auto most = static_cast<std::uint64_t>(options_.faults.delay.count());
  auto wait = static_cast<Nanos::rep>(random_.below(most + 1));
  if (random_.happens(options_.faults.stall_percent)) wait = 100 * (wait + 1);
  return clock_.time + Nanos{1 + wait};
}

void SimCluster::schedule(Nanos at, std::function<void()> run) { events_.push({at, random_.next(), std::move(run)}); }

void SimCluster::copy(std::byte* to, device::MemoryKind to_kind, const std::byte* from, device::MemoryKind from_kind,
                      std::size_t size_bytes) const {
  if (size_bytes == 0) return;
  const bool is_plain = device::is_cpu_accessible(to_kind) && device::is_cpu_accessible(from_kind);
  if (!is_plain && options_.copy_device) return options_.copy_device(to, from, size_bytes);
  std::memcpy(to, from, size_bytes);
}

}  // namespace weft::transport::sim
