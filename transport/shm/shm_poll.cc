#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "transport/shm/shm_rank.h"

namespace weft::transport::shm {
namespace {

/// A dead process is noticed within about this time while this rank polls, and at once when it sleeps on the fd.
constexpr Nanos kLookInterval = std::chrono::milliseconds(1);
/// The clock is read once in so many polls: 25 ns over 64 polls do not count.
constexpr std::uint32_t kPollsPerClock = 64;
/// How long a peer that revoked while its ring was full may take to say more, once it has room.
constexpr Nanos kPatienceWithRevoked = std::chrono::milliseconds(100);
/// The longest that a futex sleep goes without looking for dead processes.
constexpr Nanos kSleepSlice = std::chrono::milliseconds(50);

Completion news(Completion::Kind kind, Rank peer) noexcept {
  return {.kind = kind, .peer = peer, .notice = 0, .token = {}, .message = {}};
}

}  // namespace

std::size_t ShmRank::poll(std::span<Completion> out) noexcept {
  if (++num_polls_ % kPollsPerClock == 0) [[unlikely]]
    look_for_dead_seldom();
  if (!delivered_.empty()) return_rooms();
  sleeper_.drain();

  std::size_t count = 0;
  while (!done_.is_empty() && count < out.size()) out[count++] = done_.pop();

  const std::size_t num_direct = direct_.size();
  for (std::size_t i = 0; i < num_direct && i < direct_.size(); ++i) {
    std::size_t index = first_direct_ + i;
    if (index >= direct_.size()) index -= direct_.size();
    ShmEndpoint& link = *direct_[index];
    link.reader.prefetch_bulk();
    if (link.reader.has_next()) collect(link, out, count);
  }
  if (count == out.size() && ++first_direct_ >= direct_.size()) first_direct_ = 0;
  if (num_flagged_words_ != 0) collect_flagged(out, count);
  if (!dead_.empty()) [[unlikely]]
    collect_dead(out, count);
  return count;
}

/// Takes what lies in one ring.
void ShmRank::collect(ShmEndpoint& link, std::span<Completion> out, std::size_t& count) noexcept {
  while (count < out.size() && link.reader.has_next()) {
    const auto [kind, bytes] = link.reader.take();
    const bool is_broken = kind == LineKind::senseless || kind == LineKind::abandoned;
    if (is_broken || (kind == LineKind::closed && link.is_revoked_while_open())) [[unlikely]] {
      const std::string_view what = kind == LineKind::senseless ? "wrote words into its ring that make no sense"
                                                                : "gave its transport up without closing the link";
      link.fail(kind != LineKind::senseless && link.is_revoked_while_open()
                    ? link.revocation()
                    : Error{ErrorCode::peer_failed, fmt::format("process {} {}", link.pid(), what)}.about(link.peer()));
      out[count++] = news(Completion::Kind::failed, link.peer());
      stop_receiving(link);
      return;
    }
    if (!link.has_delivered) {
      link.has_delivered = true;
      delivered_.push_back(&link);
    }
    Completion& completion = out[count++];
    completion.peer = link.peer();
    switch (kind) {
      case LineKind::small:
      case LineKind::large:
        completion.kind = Completion::Kind::message;
        completion.message = bytes;
        break;
      case LineKind::notice:
        completion.kind = Completion::Kind::notice;
        std::memcpy(&completion.notice, bytes.data(), sizeof completion.notice);
        break;
      case LineKind::closed:
        completion.kind = Completion::Kind::closed;
        link.set_peer_closed();
        stop_receiving(link);
        return;
      case LineKind::senseless:
      case LineKind::abandoned: return;  // Above.
    }
  }
}

std::uint64_t ShmRank::pending_word(std::size_t word) const noexcept {
  using Word [[gnu::may_alias]] = std::uint64_t;  // Eight of the bytes at once.
  return __atomic_load_n(reinterpret_cast<const Word*>(own_.header->pending.data()) + word, __ATOMIC_ACQUIRE);
}

void ShmRank::collect_flagged(std::span<Completion> out, std::size_t& count) noexcept {
  for (std::size_t word = 0; word < num_flagged_words_; ++word) {
    for (std::uint64_t bytes = pending_word(word); bytes != 0;) {
      const std::size_t entry = word * 8 + static_cast<std::size_t>(std::countr_zero(bytes)) / 8;
      bytes &= ~(std::uint64_t{0xff} << (entry % 8 * 8));
      // An exchange, not a store: a byte that is set after it stays set, and one that was set before it brings the
      // message with it, so no message is left behind without its byte.
      own_.header->pending[entry].exchange(0, std::memory_order_acq_rel);
      ready_[entry / 64] |= std::uint64_t{1} << (entry % 64);
    }
  }
  for (std::size_t word = 0; word < ready_.size(); ++word) {
    for (std::uint64_t bits = ready_[word]; bits != 0; bits &= bits - 1) {
      if (count == out.size()) return;  // The rest stays ready for the next poll.
      const std::size_t entry = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
      ShmEndpoint* const link = by_entry_[entry];
      if (link != nullptr && link->is_receiving()) collect(*link, out, count);
      if (link == nullptr || !link->is_receiving() || !link->reader.has_next()) ready_[word] &= ~(bits & -bits);
    }
  }
}

/// A process that ended or revoked: what it had sent comes first, then the news of its end.
void ShmRank::collect_dead(std::span<Completion> out, std::size_t& count) noexcept {
  std::erase_if(dead_, [&](ShmEndpoint* link) {
    if (link->is_receiving()) collect(*link, out, count);
    if (!link->is_receiving()) return true;  // It had closed in order before it ended.
    if (link->reader.has_next() || count == out.size()) return false;
    link->fail(link->is_revoked() ? link->revocation()
                                  : Error{ErrorCode::peer_failed, fmt::format("process {} died", link->pid()),
                                          "Look for its own messages and for the kernel's out-of-memory killer"}
                                        .about(link->peer()));
    out[count++] = news(Completion::Kind::failed, link->peer());
    stop_receiving(*link);
    return true;
  });
}

void ShmRank::return_rooms() noexcept {
  for (ShmEndpoint* link : delivered_) link->return_room();
  delivered_.clear();
}

void ShmRank::look_for_dead() noexcept {
  std::array<std::uint32_t, 64> entries;
  const std::size_t found = sleeper_.dead(entries);
  for (std::size_t i = 0; i < found; ++i) {
    ShmEndpoint* const link = by_entry_[entries[i]];
    sleeper_.unwatch(link->process());  // Readable for ever from now on.
    add_dead(*link);
  }
  const Nanos now = steady_clock().now();
  for (const auto& [rank, link] : links_) {
    if (link->is_receiving() && link->is_revoked_since(now - kPatienceWithRevoked)) add_dead(*link);
  }
}

void ShmRank::add_dead(ShmEndpoint& link) noexcept {
  if (!link.is_receiving() || std::find(dead_.begin(), dead_.end(), &link) != dead_.end()) return;
  dead_.push_back(&link);  // Cannot allocate: there is room for every peer.
}

void ShmRank::look_for_dead_seldom() noexcept {
  const Nanos now = steady_clock().now();
  if (now - last_look_ < kLookInterval) return;
  last_look_ = now;
  look_for_dead();
}

void ShmRank::stop_receiving(ShmEndpoint& link) noexcept {
  std::erase(direct_, &link);
  sleeper_.unwatch(link.process());
  if (first_direct_ >= direct_.size()) first_direct_ = 0;
}

bool ShmRank::has_work() const noexcept {
  if (!done_.is_empty() || !dead_.empty()) return true;
  for (const ShmEndpoint* link : direct_) {
    if (link->reader.has_next()) return true;
  }
  for (std::size_t word = 0; word < num_flagged_words_; ++word) {
    if (pending_word(word) != 0) return true;
  }
  if (std::any_of(ready_.begin(), ready_.end(), [](std::uint64_t word) { return word != 0; })) return true;
  return std::any_of(links_.begin(), links_.end(),
                     [](const auto& link) { return link.second->has_room_after_refusal(); });
}

bool ShmRank::arm(Wake wake) noexcept {
  // What the last poll gave out stays valid until the next one, so its room cannot be returned here. A writer may wait
  // for that room while this side sleeps, so the caller has to poll once more. (Room below what RingReader keeps back
  // anyway blocks nobody.)
  for (const ShmEndpoint* link : delivered_) {
    if (link->reader.owes_room()) return false;
  }
  look_for_dead();
  sleeper_.announce(wake);
  if (!has_work()) return true;
  sleeper_.withdraw();
  return false;
}

void ShmRank::sleep(Nanos limit) noexcept {
  const Deadline deadline = Deadline::after(limit);
  for (;;) {
    look_for_dead();
    if (!dead_.empty() || deadline.has_passed()) return;
    if (sleeper_.wait(std::min(kSleepSlice, deadline.remaining()))) return;
  }
}

}  // namespace weft::transport::shm
