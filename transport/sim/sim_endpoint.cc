#include <algorithm>

#include <fmt/format.h>

#include "base/out_of_memory.h"
#include "transport/sim/sim_transport.h"

namespace weft::transport::sim {

SimTransport& SimEndpoint::far() const noexcept { return *cluster_.transports_[peer_.index()]; }

SimEndpoint& SimEndpoint::twin() const noexcept { return *far().endpoints_[home_.rank_.index()]; }

std::string SimEndpoint::describe() const { return fmt::format("sim {} -> {}", home_.rank_.value(), peer_.value()); }

std::optional<Error> SimEndpoint::refusal() const {
  if (failure_) return failure_;
  if (is_closing_) return Error{ErrorCode::closed, "post after close()"}.about(peer_);
  if (is_closed_) return Error{ErrorCode::closed, "the peer closed the link"}.about(peer_);
  return std::nullopt;
}

bool SimEndpoint::is_pressed(std::uint32_t in_flight) {
  return in_flight >= cluster_.options_.in_flight_max ||
         cluster_.random_.happens(cluster_.options_.faults.post_again_percent);
}

void SimEndpoint::deliver(Nanos at, std::function<void()> run) {
  last_arrival_ = std::max(last_arrival_, at);
  cluster_.schedule(at, [this, run = std::move(run)] {
    if (!is_cut_) run();
  });
}

Result<Posted> SimEndpoint::post_message(std::span<const std::byte> header,
                                         std::span<const std::byte> payload) noexcept {
  return or_out_of_memory([&]() -> Result<Posted> {
    if (auto error = refusal()) return *error;
    const std::size_t size = header.size() + payload.size();
    if (size > capabilities().message_size_max) {
      return Error{ErrorCode::out_of_range, fmt::format("a message of {} bytes; at most {} are possible", size,
                                                        capabilities().message_size_max)};
    }
    if (is_pressed(messages_unpolled_)) return Posted::again;
    std::vector<std::byte> bytes(header.begin(), header.end());
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    ++messages_unpolled_;
    ++cluster_.traffic_.messages;
    cluster_.traffic_.message_bytes += size;
    last_message_ = std::max(last_message_ + Nanos{1}, cluster_.draw_arrival());
    deliver(last_message_, [this, bytes = std::move(bytes)]() mutable {
      far().push({.kind = Completion::Kind::message, .peer = home_.rank_}, std::move(bytes));
    });
    return Posted::started;
  });
}

Result<Posted> SimEndpoint::post_write(LocalSlice source, RemoteSlice destination, std::optional<std::uint32_t> notice,
                                       Token token) noexcept {
  return or_out_of_memory([&]() -> Result<Posted> {
    if (auto error = refusal()) return *error;
    const Pinned pinned{source};
    WEFT_TRY(home_.check(pinned));
    if (source.size_bytes != destination.size_bytes) {
      return Error{ErrorCode::out_of_range, "the slices of a write differ in size"};
    }
    if (capabilities().large_path != LargePath::write && !load_pointer(destination)) {
      return Error{ErrorCode::unsupported, "this link cannot write to memory that is not mapped"};
    }
    if (is_pressed(transfers_in_flight_)) return Posted::again;
    ++transfers_in_flight_;
    ++cluster_.traffic_.writes;
    cluster_.traffic_.write_bytes += source.size_bytes;
    // The source is read at a random time after the post, and the destination written at a later one.
    const Nanos captured = cluster_.draw_arrival();
    const Nanos arrived = std::max(captured + Nanos{1}, cluster_.draw_arrival());
    const Nanos written = std::max(captured + Nanos{1}, cluster_.draw_arrival());
    const auto bytes = std::make_shared<std::vector<std::byte>>(source.size_bytes);
    deliver(captured, [this, pinned, bytes] {
      if (!home_.is_registered(pinned)) {
        return fail(Error{ErrorCode::invalid_argument, "the source of a write was released before its Completion"});
      }
      cluster_.copy(bytes->data(), device::MemoryKind::host, pinned.data(), pinned.region.kind, bytes->size());
    });
    deliver(arrived, [this, bytes, destination, notice] { finish_write(*bytes, destination, notice); });
    deliver(written, [this, token] {
      --transfers_in_flight_;
      home_.push({.kind = Completion::Kind::written, .peer = peer_, .token = token});
    });
    return Posted::started;
  });
}

void SimEndpoint::finish_write(const std::vector<std::byte>& bytes, RemoteSlice destination,
                               std::optional<std::uint32_t> notice) {
  if (!bytes.empty()) {
    const Registration* region = far().find(destination);
    if (region == nullptr) {
      return twin().fail(Error{ErrorCode::malformed, "the peer wrote outside of every registered region"});
    }
    cluster_.copy(region->base + destination.offset, region->kind, bytes.data(), device::MemoryKind::host,
                  bytes.size());
  }
  if (notice) far().push({.kind = Completion::Kind::notice, .peer = home_.rank_, .notice = *notice});
}

Result<Posted> SimEndpoint::post_read(LocalSlice destination, RemoteSlice source, Token token) noexcept {
  return or_out_of_memory([&]() -> Result<Posted> {
    if (auto error = refusal()) return *error;
    const Pinned pinned{destination};
    WEFT_TRY(home_.check(pinned));
    if (source.size_bytes != destination.size_bytes) {
      return Error{ErrorCode::out_of_range, "the slices of a read differ in size"};
    }
    const bool can_read = capabilities().large_path == LargePath::read &&
                          (capabilities().plain_path == PlainPath::read || load_pointer(source));
    if (!can_read) return Error{ErrorCode::unsupported, "this link cannot read"};
    if (is_pressed(transfers_in_flight_)) return Posted::again;
    ++transfers_in_flight_;
    ++cluster_.traffic_.reads;
    cluster_.traffic_.read_bytes += source.size_bytes;
    deliver(cluster_.draw_arrival(), [this, pinned, source, token] {
      const Registration* region = far().find(source);
      if (source.size_bytes > 0 && region == nullptr) {
        return fail(Error{ErrorCode::peer_failed, "a read outside of every region that the peer registered"});
      }
      if (!home_.is_registered(pinned)) {
        return fail(Error{ErrorCode::invalid_argument, "the destination of a read was released before its Completion"});
      }
      if (source.size_bytes > 0) {
        cluster_.copy(pinned.data(), pinned.region.kind, region->base + source.offset, region->kind, source.size_bytes);
      }
      --transfers_in_flight_;
      home_.push({.kind = Completion::Kind::read, .peer = peer_, .token = token});
    });
    return Posted::started;
  });
}

Result<std::byte*> SimEndpoint::load_pointer(RemoteSlice slice) noexcept {
  return or_out_of_memory([&]() -> Result<std::byte*> {
    if (auto error = refusal()) return *error;
    if (!capabilities().maps_shared_memory) return Error{ErrorCode::unsupported, "this link maps no memory"};
    const Registration* region = far().find(slice);
    if (region == nullptr)
      return Error{ErrorCode::out_of_range, "a slice outside of every region that the peer registered"};
    if (region->kind != device::MemoryKind::shared)
      return Error{ErrorCode::unsupported, "the region is not shared memory"};
    return region->base + slice.offset;
  });
}

void SimEndpoint::revoke(std::string_view why) noexcept {
  if (has_revoked_) return;
  has_revoked_ = true;
  if (failure_) return;
  twin().is_revoked_ = capabilities().large_path == LargePath::read;  // Seen at once, as a word in shared memory is.
  // Later than what this rank may still say of it.
  constexpr Nanos kPatience = std::chrono::milliseconds(100);
  deliver(std::max(last_message_, cluster_.draw_arrival()) + kPatience, [this, why = std::string(why)] {
    if (!twin().is_closed_) twin().take_failure(Error{ErrorCode::peer_failed, "the peer gave up: " + why});
  });
}

void SimEndpoint::close() noexcept {
  if (is_closing_ || failure_) return;
  is_closing_ = true;
  deliver(std::max(last_arrival_ + Nanos{1}, cluster_.draw_arrival()), [this] {
    twin().is_closed_ = true;
    far().push({.kind = Completion::Kind::closed, .peer = home_.rank_});
  });
}

void SimEndpoint::fail(const Error& cause) {
  is_cut_ = twin().is_cut_ = true;
  take_failure(cause);
  twin().fail_later(Error{ErrorCode::peer_failed, "the peer broke the link"});
}

void SimEndpoint::fail_later(const Error& cause) {
  cluster_.schedule(cluster_.draw_arrival(), [this, cause] { take_failure(cause); });
}

void SimEndpoint::take_failure(const Error& cause) {
  // After the peer's close nothing more is expected from it; only what is still on the way there can be lost.
  if (failure_ || (is_closed_ && transfers_in_flight_ == 0)) return;
  failure_ = cause.about(peer_);
  home_.push({.kind = Completion::Kind::failed, .peer = peer_});
}

}  // namespace weft::transport::sim
