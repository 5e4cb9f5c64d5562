#include "transport/shm/shm_rank.h"

#include <fmt/format.h>
#include <new>

#include "base/out_of_memory.h"
#include "base/random.h"
#include "transport/shm/region_key.h"

namespace weft::transport::shm {

Result<std::unique_ptr<Transport>> make_shm_transport(ShmOptions options) { return ShmRank::create(options); }

Result<std::unique_ptr<Transport>> ShmRank::create(const ShmOptions& options) {
  std::unique_ptr<ShmRank> rank(new ShmRank(options));
  WEFT_TRY(rank->open());
  return std::unique_ptr<Transport>(std::move(rank));
}

Status ShmRank::open() {
  own_.rank = options_.rank;
  own_.plain_copy = options_.plain_copy;
  WEFT_TRY_ASSIGN(own_.address.place, own_place());
  WEFT_TRY_ASSIGN(file_, create_memory_file("weft-shm", kHeaderSize));
  WEFT_TRY_ASSIGN(header_memory_, map_file(file_.get(), 0, kHeaderSize, Populate::now));
  own_.address.fd = static_cast<std::uint32_t>(file_.get());
  fill_secure_random(own_.address.token);
  fill_secure_random(std::as_writable_bytes(std::span(&probe_word_, 1)));
  own_.probe_word = &probe_word_;
  own_.has_barrier = join_asymmetric_barrier();

  own_.header = new (header_memory_.data()) ControlHeader{};
  own_.header->magic = ControlHeader::kMagic;
  own_.header->token = own_.address.token;
  own_.header->has_barrier = own_.has_barrier ? 1 : 0;
  WEFT_TRY(sleeper_.open(own_.header->sleep, own_.has_barrier));
  own_.bell_fd = sleeper_.bell_fd();
  return {};
}

ShmRank::~ShmRank() {
  if (own_.header == nullptr) return;
  own_.header->leaving.store(1, std::memory_order_release);
  for (auto& [rank, link] : links_) link->abandon();
}

Endpoint* ShmRank::endpoint(Rank peer) noexcept {
  const auto found = links_.find(peer);
  return found == links_.end() ? nullptr : found->second.get();
}

Result<Registration> ShmRank::register_memory(std::byte* base, std::uint64_t size_bytes,
                                              device::MemoryKind kind) noexcept {
  return or_out_of_memory([&]() -> Result<Registration> {
    Registration registration{.base = base, .size_bytes = size_bytes, .kind = kind, .key = {}, .handle = 0};
    switch (kind) {
      case device::MemoryKind::host:
        // Nothing to do: the kernel checks the peer's pages when it reads them.
        registration.key = encode_plain_key(base, size_bytes);
        return registration;
      case device::MemoryKind::shared: {
        const auto place = find_shared_memory(base, size_bytes);
        if (!place) {
          return Error{ErrorCode::invalid_argument,
                       fmt::format("register {} bytes as shared: they do not lie in one shared allocation", size_bytes),
                       "Allocate them with weft_memory_allocate, or register them as host memory"};
        }
        const auto key = encode_shared_key(place->fd, place->id, place->offset, size_bytes);
        if (!key) {
          return Error{ErrorCode::limit_exceeded,
                       "a shared allocation over 4 TiB, or a file descriptor over a million"};
        }
        registration.key = *key;
        return registration;
      }
      case device::MemoryKind::device: break;
    }
    return Error{ErrorCode::unsupported, "shm moves memory of the host only"};
  });
}

void ShmRank::release_memory(const Registration& /*registration*/) noexcept {
  // A key names addresses or an allocation; there is no table behind it.
}

}  // namespace weft::transport::shm
