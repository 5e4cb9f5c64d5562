#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "transport/shm/layout.h"
#include "transport/shm/small_copy.h"

namespace weft::transport::shm {

/// A ring of messages from one process to one other, in memory that both map.
///
/// Every message takes one line. Its `control` word is always a control word and nothing else, so what the reader finds
/// there is either this lap's word or the one of exactly one lap ago (or zero): comparing the sequence tells them apart
/// with certainty, whatever the payloads are. Bytes that do not fit into the line lie in the bulk area, contiguous
/// because the area is mapped twice in a row; both sides know where from counting.
///
/// Sequence: line number i carries i + 1 mod 2^32, so 0 (fresh memory) is valid for no line of the first lap, and a
/// word of the lap before differs by num_lines, which is never 0 mod 2^32.
class RingView {
 public:
  RingView() = default;
  RingView(std::byte* base, RingGeometry geometry) noexcept
      : header_(reinterpret_cast<RingHeader*>(base)),
        lines_(reinterpret_cast<Line*>(base + kPageSize)),
        bulk_(base + kPageSize + geometry.lines_size()),
        geometry_(geometry) {}

 protected:
  [[nodiscard]] Line& line(std::uint64_t number) const noexcept { return lines_[number & (geometry_.num_lines - 1)]; }
  [[nodiscard]] std::byte* bulk(std::uint64_t position) const noexcept {
    return bulk_ + (position & (geometry_.bulk_size - 1));
  }
  static constexpr std::uint64_t bulk_used_by(std::size_t size) noexcept { return (size + 63) & ~std::uint64_t{63}; }

  RingHeader* header_ = nullptr;
  Line* lines_ = nullptr;
  std::byte* bulk_ = nullptr;
  RingGeometry geometry_;
};

/// What a line holds.
enum class LineKind : std::uint32_t {
  senseless = 0,  ///< Never written: what a reader makes of words that are no line.
  small = 1,
  large = 2,
  notice = 3,
  closed = 4,     ///< The writer closed the link in order.
  abandoned = 5,  ///< The writer's transport went away without a close.
};

/// The writing end. Thread: one.
class RingWriter : public RingView {
 public:
  RingWriter() = default;
  using RingView::RingView;

  [[nodiscard]] std::size_t message_size_max() const noexcept { return geometry_.message_size_max(); }

  /// Copies header and payload behind each other into the ring. False: no room now.
  /// Shape:  together at most message_size_max.
  bool try_write(std::span<const std::byte> header, std::span<const std::byte> payload) noexcept {
    const std::size_t size = header.size() + payload.size();
    if (size <= Line::kInlineMax) {
      if (!has_room(0)) [[unlikely]]
        return false;
      Line& next = line(lines_sent_);
      copy_inline(next.content.data(), header);
      copy_inline(next.content.data() + header.size(), payload);
      publish(next, LineKind::small, size);
      return true;
    }
    if (!has_room(bulk_used_by(size))) [[unlikely]]
      return false;
    std::byte* place = bulk(bulk_sent_);
    copy_inline(place, header);
    if (!payload.empty()) std::memcpy(place + header.size(), payload.data(), payload.size());
    bulk_sent_ += bulk_used_by(size);
    publish(line(lines_sent_), LineKind::large, size);
    return true;
  }

  /// False: no room now.
  bool try_notice(std::uint32_t notice) noexcept {
    if (!has_room(0)) return false;
    Line& next = line(lines_sent_);
    std::memcpy(next.content.data(), &notice, sizeof notice);
    publish(next, LineKind::notice, sizeof notice);
    return true;
  }

  /// Room for a notice; may only grow until the next call of a try_ function.
  [[nodiscard]] bool has_line() noexcept { return has_room(0); }

  /// The last word of this ring, closed or abandoned. Always fits: one line is kept for it.
  void write_last(LineKind kind) noexcept { publish(line(lines_sent_), kind, 0); }

  /// True if a refused write is still waiting for room and there is some now.
  [[nodiscard]] bool has_room_after_refusal() const noexcept {
    return refused_ && (header_->lines_returned.load(std::memory_order_acquire) != lines_returned_ ||
                        header_->bulk_returned.load(std::memory_order_acquire) != bulk_returned_);
  }

 private:
  static void copy_inline(std::byte* destination, std::span<const std::byte> source) noexcept {
    constexpr std::size_t kSmall = 64;
    if (source.size() <= kSmall) {
      small_copy(destination, source.data(), source.size());
    } else {
      std::memcpy(destination, source.data(), source.size());
    }
  }
  /// Invariant: lines_sent_ - lines_returned_ <= num_lines - 1 before write_last.
  [[nodiscard]] bool has_room(std::uint64_t bulk_needed) noexcept {
    if (fits(bulk_needed)) [[likely]]
      return true;
    lines_returned_ = header_->lines_returned.load(std::memory_order_acquire);
    bulk_returned_ = header_->bulk_returned.load(std::memory_order_acquire);
    refused_ = !fits(bulk_needed);
    // The reader wakes this side after it returned room, if this word is set (see RingReader::return_room).
    header_->is_writer_waiting.store(refused_ ? 1 : 0, std::memory_order_relaxed);
    return !refused_;
  }
  [[nodiscard]] bool fits(std::uint64_t bulk_needed) const noexcept {
    return lines_sent_ - lines_returned_ < geometry_.num_lines - 1 &&
           bulk_sent_ - bulk_returned_ + bulk_needed <= geometry_.bulk_size;
  }
  void publish(Line& next, LineKind kind, std::size_t size) noexcept {
    ++lines_sent_;
    next.control.store((lines_sent_ << 32) | (static_cast<std::uint64_t>(kind) << 28) | size,
                       std::memory_order_release);
  }

  std::uint64_t lines_sent_ = 0;
  std::uint64_t bulk_sent_ = 0;
  std::uint64_t lines_returned_ = 0;  ///< As last read from the reader's words.
  std::uint64_t bulk_returned_ = 0;
  bool refused_ = false;
};

/// The reading end. Thread: one.
class RingReader : public RingView {
 public:
  RingReader() = default;
  using RingView::RingView;

  struct Item {
    LineKind kind{};
    std::span<const std::byte> bytes;  ///< In the ring; stay until return_room.
  };

  [[nodiscard]] bool has_next() const noexcept {
    return static_cast<std::uint32_t>(line(lines_read_).control.load(std::memory_order_acquire) >> 32) ==
           static_cast<std::uint32_t>(lines_read_ + 1);
  }

  /// Asks for the lines where the next longer message would lie. Done with every look at the control word, the lines
  /// come together with the word that announces them, not after it: one journey between the caches in place of two.
  void prefetch_bulk() const noexcept {
    constexpr std::size_t kAhead = 512;
    const std::byte* place = bulk(bulk_read_);
    for (std::size_t offset = 0; offset < kAhead; offset += 64) __builtin_prefetch(place + offset);
  }

  /// Takes the next item; only after has_next().
  [[nodiscard]] Item take() noexcept {
    const Line& next = line(lines_read_);
    const std::uint64_t control = next.control.load(std::memory_order_relaxed);
    const auto kind = static_cast<LineKind>((control >> 28) & 0xf);
    const std::size_t size = control & 0xfffffff;
    ++lines_read_;
    if (kind == LineKind::large) {
      if (size > geometry_.message_size_max()) return {};
      const std::byte* place = bulk(bulk_read_);
      bulk_read_ += bulk_used_by(size);
      return Item{kind, {place, size}};
    }
    if (kind < LineKind::small || kind > LineKind::abandoned || size > Line::kInlineMax) return {};
    return Item{kind, {next.content.data(), size}};
  }

  /// Returns the room of everything that was taken. Lazily: the writer hears of it when an eighth of the ring is free
  /// again, so that the line with the two counters seldom moves. Nothing is ever stuck: what is kept back is less than
  /// an eighth, and a message needs at most half.
  /// True if the writer was told: then, after a barrier, it is woken if is_writer_waiting().
  [[nodiscard]] bool return_room() noexcept {
    if (!owes_room()) return false;
    lines_told_ = lines_read_;
    bulk_told_ = bulk_read_;
    header_->bulk_returned.store(bulk_told_, std::memory_order_release);
    header_->lines_returned.store(lines_told_, std::memory_order_release);
    return true;
  }
  /// There is enough room to return for the writer to be told.
  [[nodiscard]] bool owes_room() const noexcept {
    return lines_read_ - lines_told_ >= geometry_.num_lines / 8 || bulk_read_ - bulk_told_ >= geometry_.bulk_size / 8;
  }
  [[nodiscard]] bool is_writer_waiting() const noexcept {
    return header_->is_writer_waiting.load(std::memory_order_relaxed) != 0;
  }

 private:
  std::uint64_t lines_read_ = 0;
  std::uint64_t bulk_read_ = 0;
  std::uint64_t lines_told_ = 0;
  std::uint64_t bulk_told_ = 0;
};

}  // namespace weft::transport::shm
