#include "transport/shm/pair_handshake.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "base/log.h"
#include "base/text.h"

namespace weft::transport::shm {

void write_reason(Reason& reason, std::string_view text) noexcept {
  const std::size_t size = std::min(text.size(), reason.size() - 1);
  std::memcpy(reason.data(), text.data(), size);
  reason[size] = '\0';
}

std::string read_reason(const Reason& reason) {
  return printable({reason.data(), ::strnlen(reason.data(), reason.size())});
}

std::string PairHandshake::peer_name() const { return fmt::format("process {}", peer_address_.place.pid); }

Status PairHandshake::reach(std::span<const std::byte> address) {
  WEFT_TRY_ASSIGN(peer_address_, decode_address(address));
  const ProcessPlace& here = own_.address.place;
  const ProcessPlace& there = peer_address_.place;
  if (here.boot_id != there.boot_id) return Error{ErrorCode::unsupported, "the peer runs on another host (boot id)"};
  if (here.pid_namespace != there.pid_namespace) {
    return Error{ErrorCode::unsupported, "the peer runs in another pid namespace (container)",
                 "Start the containers with a common pid namespace to use shared memory between them"};
  }
  own_proof_ = prove(own_.address.token, peer_address_.token);
  peer_proof_ = prove(peer_address_.token, own_.address.token);
  Status status = reach_process();
  if (!status) {
    // Whatever step it was that failed: if the process has ended meanwhile, that is the cause.
    if (has_died()) status = Error{ErrorCode::peer_failed, peer_name() + " died"};
    refuse(status.error());
    return status;
  }
  stage_ = Stage::reached;
  return {};
}

Status PairHandshake::reach_process() {
  const std::uint32_t pid = parts_.pid = peer_address_.place.pid;
  parts_.process = Descriptor{static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0))};
  if (!parts_.process.is_open()) {
    const int err = errno;
    return Error::from_errno(err == ESRCH ? ErrorCode::peer_failed : ErrorCode::unsupported,
                             fmt::format("pidfd_open of process {}", pid), err);
  }
  // From here on the pidfd holds one process; that it is the right one, its start time says.
  WEFT_TRY_ASSIGN(const std::uint64_t start_time, start_time_of(pid));
  if (start_time != peer_address_.place.start_time) {
    return Error{ErrorCode::peer_failed, fmt::format("process {} is gone, its number belongs to another", pid)};
  }
  WEFT_TRY_ASSIGN(const Descriptor file, open_memory_file_of(pid, static_cast<int>(peer_address_.fd), kHeaderSize));
  WEFT_TRY_ASSIGN(parts_.peer_header, map_file(file.get(), 0, kHeaderSize, Populate::now));
  if (peer_header().magic != ControlHeader::kMagic || peer_header().token != peer_address_.token) {
    return Error{ErrorCode::unsupported,
                 fmt::format("/proc/{}/fd/{} holds another token than the peer published", pid, peer_address_.fd)};
  }
  return {};
}

Status PairHandshake::say_hello(Mapping memory, std::uint64_t ring_offset, RingGeometry geometry, bool is_flagged) {
  parts_.inbound_memory = std::move(memory);
  parts_.inbound_geometry = geometry;
  parts_.is_flagged = is_flagged;
  std::uint32_t index = 0;
  for (HelloWire& entry : peer_header().hellos) {
    if (entry.stage.load(std::memory_order_acquire) != HelloWire::empty && entry.proof == own_proof_) {
      return Error{ErrorCode::closed, "this pair tried to connect before and gave up"};
    }
    std::uint32_t free = 0;
    if (entry.claimed.compare_exchange_strong(free, 1, std::memory_order_acq_rel)) {
      said_ = &entry;
      break;
    }
    ++index;
  }
  if (said_ == nullptr) {
    return Error{ErrorCode::limit_exceeded,
                 fmt::format("{} has {} peers on this host already", peer_name(), kPeersMax)};
  }
  parts_.pending_byte = &peer_header().pending[index];
  said_->rank = own_.rank.value();
  said_->proof = own_proof_;
  said_->ring_offset = ring_offset;
  said_->bulk_size = geometry.bulk_size;
  said_->num_lines = geometry.num_lines;
  said_->flagged = is_flagged ? 1 : 0;
  said_->bell_fd = own_.bell_fd;
  said_->plain_copy = static_cast<std::uint32_t>(own_.plain_copy);
  said_->probe_address = reinterpret_cast<std::uint64_t>(own_.probe_word);
  said_->probe_value = *own_.probe_word;
  said_->process = process_token();
  said_->stage.store(HelloWire::said, std::memory_order_release);
  stage_ = Stage::waiting_for_hello;
  return {};
}

bool PairHandshake::find_hello() noexcept {
  std::uint32_t index = 0;
  for (HelloWire& entry : own_.header->hellos) {
    if (entry.claimed.load(std::memory_order_acquire) == 0) return false;  // Entries are taken in order.
    if (entry.stage.load(std::memory_order_acquire) != HelloWire::empty && entry.proof == peer_proof_) {
      heard_ = &entry;
      parts_.entry_index = index;
      return true;
    }
    ++index;
  }
  return false;
}

Status PairHandshake::judge() {
  const std::uint32_t pid = parts_.pid;
  parts_.outbound_geometry = {.num_lines = heard_->num_lines, .bulk_size = heard_->bulk_size};
  if (!parts_.outbound_geometry.is_valid() || heard_->rank != parts_.peer.value()) {
    return Error{ErrorCode::malformed, "the peer's hello makes no sense"};
  }
  const RingGeometry geometry = parts_.outbound_geometry;
  WEFT_TRY_ASSIGN(const Descriptor file, open_memory_file_of(pid, static_cast<int>(peer_address_.fd),
                                                             heard_->ring_offset + geometry.file_size()));
  WEFT_TRY_ASSIGN(parts_.outbound_memory,
                  map_file_mirrored(file.get(), heard_->ring_offset, geometry.file_size(), geometry.bulk_size));
  if (heard_->flagged == 0) parts_.pending_byte = nullptr;

  const std::string path = fmt::format("/proc/{}/fd/{}", pid, heard_->bell_fd);
  Descriptor bell{::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)};
  if (!bell.is_open()) return Error::from_errno(ErrorCode::unsupported, "open the pipe " + path, errno);
  parts_.bell = Bell{peer_header().sleep, std::move(bell), own_.has_barrier && peer_header().has_barrier != 0};
  parts_.peer_process = heard_->process;
  return {};
}

/// That the system call exists does not mean that it is allowed (yama, seccomp, another user): only a read that brought
/// the right word does.
bool PairHandshake::probe_plain_read() const noexcept {
  std::uint64_t word = ~heard_->probe_value;
  const iovec local{&word, sizeof word};
  const iovec remote{reinterpret_cast<void*>(heard_->probe_address), sizeof word};  // NOLINT: an address of the peer.
  return ::process_vm_readv(static_cast<pid_t>(parts_.pid), &local, 1, &remote, 1, 0) ==
             static_cast<ssize_t>(sizeof word) &&
         word == heard_->probe_value;
}

bool PairHandshake::step(bool is_deadline_passed) noexcept {
  if (stage_ == Stage::waiting_for_hello && find_hello()) {
    if (Status status = judge(); !status) {
      refuse(status.error());
      return true;
    }
    said_->accepted = 1;
    said_->reads_plain = probe_plain_read() ? 1 : 0;
    said_->stage.store(HelloWire::judged, std::memory_order_release);
    stage_ = Stage::waiting_for_verdict;
  }
  if (stage_ == Stage::waiting_for_verdict && heard_->stage.load(std::memory_order_acquire) == HelloWire::judged) {
    if (heard_->accepted != 0) {
      decide(std::nullopt);
    } else {
      settle(Error{ErrorCode::unsupported, fmt::format("{} refused: {}", peer_name(), read_reason(heard_->reason))});
    }
    return true;
  }
  if (is_settled()) return true;
  if (auto error = trouble(is_deadline_passed)) {
    if (stage_ == Stage::waiting_for_verdict) {
      decide(std::move(error));
    } else {
      refuse(std::move(*error));
    }
    return true;
  }
  return false;
}

/// In the lower rank's segment, where the higher rank said hello.
std::atomic<std::uint32_t>& PairHandshake::decision() const noexcept {
  return own_.rank < parts_.peer ? heard_->decision : said_->decision;
}

/// Ends in the same way on both sides: whoever comes first decides, the other follows.
void PairHandshake::decide(std::optional<Error> error) noexcept {
  std::uint32_t found = HelloWire::open;
  const std::uint32_t wish = error ? HelloWire::abandoned : HelloWire::agreed;
  if (!decision().compare_exchange_strong(found, wish, std::memory_order_acq_rel) && found != wish) {
    // Agreed by the peer after our deadline: then the link is as good as any. Or given up by the peer.
    error = found == HelloWire::agreed
                ? std::nullopt
                : std::optional(Error{ErrorCode::timeout, peer_name() + " gave up waiting for this one"});
  }
  settle(std::move(error));
}

bool PairHandshake::has_died() const noexcept {
  if (!parts_.process.is_open()) return false;
  pollfd process{.fd = parts_.process.get(), .events = POLLIN, .revents = 0};
  return ::poll(&process, 1, 0) > 0;
}

std::optional<Error> PairHandshake::trouble(bool is_deadline_passed) noexcept {
  if (has_died()) return Error{ErrorCode::peer_failed, peer_name() + " died"};
  if (peer_header().leaving.load(std::memory_order_acquire) != 0) {
    return Error{ErrorCode::closed, peer_name() + " closed its transport"};
  }
  for (const RefusalWire& refusal : peer_header().refusals) {
    if (refusal.is_valid.load(std::memory_order_acquire) == 0) break;
    if (refusal.proof == peer_proof_) {
      return Error{ErrorCode::unsupported, fmt::format("{} refused: {}", peer_name(), read_reason(refusal.reason))};
    }
  }
  if (!is_deadline_passed) return std::nullopt;
  return Error{ErrorCode::timeout, peer_name() + " did not connect before the deadline"};
}

void PairHandshake::refuse(Error error) noexcept {
  if (said_ != nullptr && stage_ == Stage::waiting_for_hello) {
    said_->accepted = 0;
    write_reason(said_->reason, error.message());
    said_->stage.store(HelloWire::judged, std::memory_order_release);
  } else {
    // Not a word in the peer's segment so far: leave it in the own one, where the peer will look.
    for (RefusalWire& refusal : own_.header->refusals) {
      if (refusal.is_valid.load(std::memory_order_relaxed) != 0) continue;
      refusal.proof = own_proof_;
      write_reason(refusal.reason, error.message());
      refusal.is_valid.store(1, std::memory_order_release);
      break;
    }
  }
  settle(std::move(error));
}

void PairHandshake::settle(std::optional<Error> error) noexcept {
  stage_ = Stage::settled;
  error_ = std::move(error);
  if (error_) return;
  const auto choice = [](std::uint32_t value) { return static_cast<PlainCopy>(value); };
  const bool works = said_->reads_plain != 0 && heard_->reads_plain != 0;
  const bool is_wanted =
      choice(said_->plain_copy) != PlainCopy::staging && choice(heard_->plain_copy) != PlainCopy::staging;
  parts_.plain_path = works && is_wanted ? PlainPath::read : PlainPath::staging;
  if (is_wanted && !works) {
    log::info(
        "rank {}: process_vm_readv is not permitted between processes {} and {}, plain memory goes through messages",
        own_.rank.value(), own_.address.place.pid, parts_.pid);
  }
}

Result<LinkParts> PairHandshake::take_result() {
  if (error_) return error_->about(parts_.peer);
  parts_.said = said_;
  parts_.heard = heard_;
  return std::move(parts_);
}

}  // namespace weft::transport::shm
