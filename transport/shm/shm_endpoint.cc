#include "transport/shm/shm_endpoint.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/log.h"
#include "base/out_of_memory.h"

namespace weft::transport::shm {
namespace {

/// Where a message stops being the faster way for a payload (shm_bench; docs/decisions). The header comes on top.
constexpr std::size_t kEagerLimit = std::size_t{16} << 10;
constexpr std::size_t kHeaderAllowance = 256;
/// Pieces that overlap well and stay in the second-level cache (shm_bench; docs/decisions).
constexpr std::size_t kSliceSize = std::size_t{256} << 10;

Capabilities make_capabilities(const LinkParts& parts) {
  const std::size_t message_size_max =
      std::min(parts.inbound_geometry.message_size_max(), parts.outbound_geometry.message_size_max());
  return {.large_path = LargePath::read,
          .plain_path = parts.plain_path,
          .maps_shared_memory = true,
          .moves_device_memory = false,
          .message_size_max = message_size_max,
          .eager_limit = std::min(kEagerLimit, message_size_max - kHeaderAllowance),
          .slice_size = kSliceSize};
}

}  // namespace

ShmEndpoint::ShmEndpoint(LinkParts parts, DoneQueue& done)
    : reader(parts.inbound_memory.data(), parts.inbound_geometry),
      writer_(parts.outbound_memory.data(), parts.outbound_geometry),
      parts_(std::move(parts)),
      done_(done),
      capabilities_(make_capabilities(parts_)),
      segments_(parts_.pid, parts_.peer_process) {}

Result<Posted> ShmEndpoint::post_message(std::span<const std::byte> header,
                                         std::span<const std::byte> payload) noexcept {
  if (!is_open()) [[unlikely]]
    return refusal();
  if (header.size() + payload.size() > capabilities_.message_size_max) [[unlikely]]
    return too_long(header.size() + payload.size());
  if (!writer_.try_write(header, payload)) [[unlikely]]
    return Posted::again;
  after_publish();
  return Posted::started;
}

Error ShmEndpoint::too_long(std::size_t size_bytes) const noexcept {
  const auto text = or_out_of_memory([&]() -> Result<Posted> {
    return Error{ErrorCode::out_of_range,
                 fmt::format("a message of {} bytes, at most {} fit", size_bytes, capabilities_.message_size_max)};
  });
  return text.error().about(peer());
}

void ShmEndpoint::after_publish() noexcept {
  if (parts_.pending_byte != nullptr) parts_.pending_byte->store(1, std::memory_order_release);
  parts_.bell.barrier();
  parts_.bell.ring_if_asleep();
}

Status ShmEndpoint::check(const LocalSlice& local, const RemoteSlice& remote, const KeyContent& key) const {
  const std::uint64_t local_region_size = local.region == nullptr ? 0 : local.region->size_bytes;
  const bool is_local_inside =
      local.offset <= local_region_size && local.size_bytes <= local_region_size - local.offset;
  const bool is_remote_inside = remote.offset <= key.size_bytes && remote.size_bytes <= key.size_bytes - remote.offset;
  if (!is_local_inside || !is_remote_inside || local.size_bytes != remote.size_bytes) {
    return Error{ErrorCode::out_of_range,
                 fmt::format("bytes {}+{} of a region of {} here, {}+{} of {} at the peer", local.offset,
                             local.size_bytes, local_region_size, remote.offset, remote.size_bytes, key.size_bytes)}
        .about(peer());
  }
  return {};
}

Result<Posted> ShmEndpoint::post_write(LocalSlice source, RemoteSlice destination, std::optional<std::uint32_t> notice,
                                       Token token) noexcept {
  return or_out_of_memory([&]() -> Result<Posted> {
    if (!is_open()) [[unlikely]]
      return refusal();
    const KeyContent key = decode_key(destination.key);
    WEFT_TRY(check(source, destination, key));
    std::byte* place = nullptr;
    if (source.size_bytes > 0) {
      if (!key.is_shared) {
        return Error{ErrorCode::unsupported, "shm cannot write into a peer's memory that was not allocated as shared",
                     "Let the receiver read it, or allocate it with weft_memory_allocate"}
            .about(peer());
      }
      WEFT_TRY_ASSIGN(place, segments_.locate(key, destination.offset, destination.size_bytes));
    }
    // Looked at before the bytes move, so that `again` means that nothing happened.
    if (done_.is_full() || (notice && !writer_.has_line())) return Posted::again;
    if (place != nullptr) std::memcpy(place, source.data(), source.size_bytes);
    if (notice && writer_.try_notice(*notice)) after_publish();
    done_.push({.kind = Completion::Kind::written, .peer = peer(), .notice = 0, .token = token, .message = {}});
    return Posted::started;
  });
}

Result<Posted> ShmEndpoint::post_read(LocalSlice destination, RemoteSlice source, Token token) noexcept {
  return or_out_of_memory([&]() -> Result<Posted> {
    if (!is_open()) [[unlikely]]
      return refusal();
    const KeyContent key = decode_key(source.key);
    WEFT_TRY(check(destination, source, key));
    if (!key.is_shared && parts_.plain_path != PlainPath::read) {
      return Error{ErrorCode::unsupported, "this pair cannot read each other's plain memory (process_vm_readv)",
                   "Use messages, or allocate the memory with weft_memory_allocate"}
          .about(peer());
    }
    if (done_.is_full()) return Posted::again;
    if (destination.size_bytes > 0) {
      if (key.is_shared) {
        WEFT_TRY_ASSIGN(const std::byte* const place, segments_.locate(key, source.offset, source.size_bytes));
        std::memcpy(destination.data(), place, source.size_bytes);
      } else {
        WEFT_TRY_ASSIGN(const Posted posted,
                        read_plain(destination.data(), key.address + source.offset, source.size_bytes));
        if (posted == Posted::again) return posted;
      }
    }
    done_.push({.kind = Completion::Kind::read, .peer = peer(), .notice = 0, .token = token, .message = {}});
    return Posted::started;
  });
}

Result<Posted> ShmEndpoint::read_plain(std::byte* destination, std::uint64_t address, std::uint64_t size_bytes) {
  // The system call moves at most 2 GiB less a page at a time and may stop early at any page.
  constexpr std::uint64_t kBlock = std::uint64_t{1} << 30;
  for (std::uint64_t done = 0; done < size_bytes;) {
    const std::uint64_t part = std::min(kBlock, size_bytes - done);
    const iovec local{destination + done, part};
    const iovec remote{reinterpret_cast<void*>(address + done), part};  // NOLINT: an address of the peer.
    const ssize_t got = ::process_vm_readv(static_cast<pid_t>(parts_.pid), &local, 1, &remote, 1, 0);
    if (got > 0) {
      done += static_cast<std::uint64_t>(got);
      continue;
    }
    const int err = got == 0 ? EFAULT : errno;
    if (err == ESRCH) return answer_of_dying();
    if (err != EFAULT) {
      return Error::from_errno(ErrorCode::system, fmt::format("process_vm_readv from process {}", parts_.pid), err)
          .about(peer());
    }
    if (is_revoked()) return Posted::again;  // The memory is gone with the operation that it belonged to.
    return Error::from_errno(ErrorCode::out_of_range,
                             fmt::format("read memory of process {}: {} bytes are not mapped there, or here",
                                         parts_.pid, size_bytes - done),
                             err, "Keep registered memory alive until its operations are complete")
        .about(peer());
  }
  return Posted::started;
}

/// A process that has no memory any more is ending. What it said before comes first, and then the watch over it tells
/// of its end: until then there is no room for reads. Only that of a process which stays like that (its first thread
/// ended, others go on) has to be told from here.
Result<Posted> ShmEndpoint::answer_of_dying() {
  constexpr Nanos kDyingMax = std::chrono::seconds(10);  // Freeing hundreds of GiB takes seconds.
  const Nanos now = steady_clock().now();
  if (!dying_since_) dying_since_ = now;
  if (now - *dying_since_ < kDyingMax) return Posted::again;
  return Error{
      ErrorCode::system,
      fmt::format("process {} lives on, but its memory cannot be read: its first thread has ended", parts_.pid),
      "The first thread of a process must not end before the others"}
      .about(peer());
}

Result<std::byte*> ShmEndpoint::load_pointer(RemoteSlice slice) noexcept {
  return or_out_of_memory([&]() -> Result<std::byte*> {
    if (!is_open()) [[unlikely]]
      return refusal();
    const KeyContent key = decode_key(slice.key);
    if (!key.is_shared) {
      return Error{ErrorCode::unsupported, "only memory that was allocated as shared can be mapped"}.about(peer());
    }
    if (slice.offset > key.size_bytes || slice.size_bytes > key.size_bytes - slice.offset) {
      return Error{ErrorCode::out_of_range,
                   fmt::format("bytes {}+{} of a shared region of {}", slice.offset, slice.size_bytes, key.size_bytes)}
          .about(peer());
    }
    return segments_.locate(key, slice.offset, slice.size_bytes);
  });
}

void ShmEndpoint::return_room() noexcept {
  has_delivered = false;
  if (!reader.return_room()) return;
  parts_.bell.barrier();
  if (reader.is_writer_waiting()) parts_.bell.ring_if_asleep();
}

void ShmEndpoint::set_peer_closed() noexcept {
  peer_closed_ = true;
  is_open_ = false;
}

void ShmEndpoint::fail(Error cause) noexcept {
  is_open_ = false;
  if (failure_) return;
  log::info("link to rank {} failed: {}", peer().value(), cause.message());
  failure_ = std::move(cause);
}

Error ShmEndpoint::refusal() const noexcept {
  if (failure_) return *failure_;
  const auto text = or_out_of_memory([&]() -> Result<Posted> {
    return Error{ErrorCode::closed, has_left_ ? "the link was closed here" : "the peer closed the link"};
  });
  return text.error().about(peer());
}

std::string ShmEndpoint::describe() const {
  return fmt::format("shm (pid {}), plain memory by {}", parts_.pid,
                     parts_.plain_path == PlainPath::read ? "process_vm_readv" : "messages");
}

/// No peer takes bytes for good that were written into revoked memory:
///   owner:  A store `revoked`;              B full fence;     C the memory is used again (stores by whomever)
///   reader: D loads of the memory's bytes;  E acquire fence;  F load `revoked`
/// Were a byte of D one of C, and F still zero: A is before C for all (B), D before F (E), so F would come after D, D
/// after C, C after A, and F had to see A. So F sees it, or every byte of D is from before C. D may be the kernel's
/// loads in process_vm_readv, which run on the reader's processor before the call returns. C may be stores of another
/// thread, which learnt from this one that the memory is free, stores of the kernel, or non-temporal ones, which no
/// release store holds back; therefore B is a full fence. It runs once in the life of a link. For F, x86 keeps loads in
/// order: E costs nothing there, and the word lies in a line that nobody writes, so F hits the first-level cache.
void ShmEndpoint::revoke(std::string_view why) noexcept {
  HelloWire& said = *parts_.said;
  if (said.revoked.load(std::memory_order_relaxed) != HelloWire::no) return;
  write_reason(said.reason, why);
  said.revoked.store(has_left_ ? HelloWire::after_close : HelloWire::before_close, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  after_publish();  // A peer that sleeps finds it when it looks for dead processes.
}

Error ShmEndpoint::revocation() const {
  return Error{ErrorCode::peer_failed,
               fmt::format("process {} gave up: {}", parts_.pid, read_reason(parts_.heard->reason))}
      .about(peer());
}

void ShmEndpoint::close() noexcept { leave(LineKind::closed); }

void ShmEndpoint::abandon() noexcept { leave(LineKind::abandoned); }

void ShmEndpoint::leave(LineKind last_word) noexcept {
  if (has_left_) return;
  has_left_ = true;
  is_open_ = false;
  // What was posted lies in the peer's segment already; the last word goes behind it.
  writer_.write_last(last_word);
  after_publish();
  segments_.clear();
}

}  // namespace weft::transport::shm
