#include "transport/sim/sim_transport.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "base/out_of_memory.h"
#include "base/wire.h"

namespace weft::transport::sim {
namespace {

constexpr std::uint32_t kAddressVersion = 1;

/// Told apart from other transports' keys and from zero-filled ones; the rank keeps keys of two ranks apart.
constexpr std::uint64_t second_of(Rank rank) noexcept { return 0x73696d0000000000ULL | rank.value(); }

bool holds(const Registration& region, std::uint64_t offset, std::uint64_t size_bytes) noexcept {
  return offset <= region.size_bytes && size_bytes <= region.size_bytes - offset;
}

}  // namespace

SimTransport::SimTransport(SimCluster& cluster, Rank rank) : cluster_(cluster), rank_(rank) {
  for (std::uint32_t peer = 0; peer < cluster.options_.ranks; ++peer) {
    endpoints_.push_back(std::make_unique<SimEndpoint>(cluster, *this, Rank{peer}));
  }
}

SimTransport::~SimTransport() {
  if (event_fd_ >= 0) ::close(event_fd_);
}

std::vector<std::byte> SimTransport::address() const {
  ByteWriter writer;
  writer.number(kAddressVersion).number(cluster_.options_.seed).number(rank_.value());
  return std::move(writer).take();
}

std::vector<Connected> SimTransport::connect(std::span<const PeerAddress> peers, Deadline) {
  std::vector<Connected> settled;
  for (const PeerAddress& peer : peers) {
    if (Status status = connect_one(peer); !status) {
      settled.push_back({peer.peer, status.error().about(peer.peer)});
      continue;
    }
    endpoints_[peer.peer.index()]->is_connected_ = true;
    settled.push_back({peer.peer, endpoints_[peer.peer.index()].get()});
  }
  for (Happened& early : std::exchange(early_, {})) push(early.completion, std::move(early.message));
  return settled;
}

Status SimTransport::connect_one(const PeerAddress& peer) {
  ByteReader reader(peer.address);
  const auto version = reader.number<std::uint32_t>();
  const auto seed = reader.number<std::uint64_t>();
  const auto rank = reader.number<std::uint32_t>();
  WEFT_TRY(reader.finish("a sim address"));
  if (version != kAddressVersion) return Error{ErrorCode::unsupported, "a sim address of another version"};
  if (seed != cluster_.options_.seed || rank != peer.peer.value() || rank >= endpoints_.size() ||
      rank == rank_.value()) {
    return Error{ErrorCode::mismatch, fmt::format("the address leads to sim rank {} of cluster {}", rank, seed)};
  }
  if (endpoints_[rank]->is_cut_) return Error{ErrorCode::timeout, "no way to the peer: the simulated link is cut"};
  return {};
}

Endpoint* SimTransport::endpoint(Rank peer) noexcept {
  if (peer.index() >= endpoints_.size() || !endpoints_[peer.index()]->is_connected_) return nullptr;
  return endpoints_[peer.index()].get();
}

Result<Registration> SimTransport::register_memory(std::byte* base, std::uint64_t size_bytes,
                                                   device::MemoryKind kind) noexcept {
  return or_out_of_memory([&]() -> Result<Registration> {
    if (kind == device::MemoryKind::device && !cluster_.options_.link.moves_device_memory) {
      return Error{ErrorCode::unsupported, "sim does not move device memory in this cluster"};
    }
    const std::uint64_t id = ++last_region_;
    const Registration made{.base = base,
                            .size_bytes = size_bytes,
                            .kind = kind,
                            .key = {.first = id, .second = second_of(rank_)},
                            .handle = id};
    regions_.emplace(id, made);
    return made;
  });
}

void SimTransport::release_memory(const Registration& registration) noexcept {
  if (cluster_.options_.keys_outlive_release) released_.emplace(registration.handle, registration);
  WEFT_CHECK(regions_.erase(registration.handle) == 1, "a registration is released once, where it was made");
}

const Registration* SimTransport::find(const RemoteSlice& slice) const noexcept {
  if (slice.key.second != second_of(rank_)) return nullptr;
  for (const auto* regions : {&regions_, &released_}) {
    const auto found = regions->find(slice.key.first);
    if (found != regions->end() && holds(found->second, slice.offset, slice.size_bytes)) return &found->second;
  }
  return nullptr;
}

Status SimTransport::check(const Pinned& slice) const {
  if (slice.size_bytes == 0 || is_registered(slice)) return {};
  return Error{ErrorCode::out_of_range,
               fmt::format("{} bytes at {} leave their registered region", slice.size_bytes, slice.offset)};
}

bool SimTransport::is_registered(const Pinned& slice) const noexcept {
  if (slice.size_bytes == 0) return true;
  const auto found = regions_.find(slice.region.handle);
  return found != regions_.end() && found->second.base == slice.region.base &&
         holds(found->second, slice.offset, slice.size_bytes);
}

void SimTransport::push(Completion completion, std::vector<std::byte> message) {
  if (!endpoints_[completion.peer.index()]->is_connected_) {
    early_.push_back({completion, std::move(message)});
    return;
  }
  happened_.push_back({completion, std::move(message)});
  if (is_armed_ && event_fd_ >= 0) {
    const std::uint64_t one = 1;
    WEFT_CHECK(::write(event_fd_, &one, sizeof one) == sizeof one, "an eventfd takes a one");
  }
}

std::size_t SimTransport::poll(std::span<Completion> out) noexcept {
  for (auto& message : polled_messages_) std::ranges::fill(message, std::byte{0xdd});
  polled_messages_.clear();
  std::size_t count = 0;
  for (; count < out.size() && !happened_.empty(); ++count) {
    Happened next = std::move(happened_.front());
    happened_.pop_front();
    out[count] = next.completion;
    if (next.completion.kind == Completion::Kind::message) {
      --endpoints_[next.completion.peer.index()]->twin().messages_unpolled_;
      out[count].message = next.message;
      polled_messages_.push_back(std::move(next.message));  // Moving a vector leaves its bytes where they are.
    }
  }
  return count;
}

bool SimTransport::arm(Wake wake) noexcept {
  if (!happened_.empty()) return false;
  if (wake == Wake::by_event_fd && event_fd_ < 0) {
    event_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    WEFT_CHECK(event_fd_ >= 0, "a process of the simulation has a descriptor left");
  }
  is_armed_ = true;
  return true;
}

void SimTransport::disarm() noexcept {
  is_armed_ = false;
  std::uint64_t count = 0;
  if (event_fd_ >= 0) (void)!::read(event_fd_, &count, sizeof count);
}

void SimTransport::sleep(Nanos limit) noexcept {
  WEFT_CHECK(is_armed_, "sleep is between arm and disarm");
  const Nanos now = cluster_.clock_.time;
  const Nanos end = limit > Nanos::max() - now ? Nanos::max() : now + limit;
  while (happened_.empty() && !cluster_.events_.empty() && cluster_.events_.top().at <= end) cluster_.step();
  if (happened_.empty() && end != Nanos::max()) cluster_.clock_.time = std::max(cluster_.clock_.time, end);
}

}  // namespace weft::transport::sim
