#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "transport/tcp/limits.h"
#include "transport/tcp/tcp_endpoint.h"

// Frames of a hostile or broken peer: the link breaks, no memory outside of the region changes.
namespace weft::transport::tcp {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t kRegion = 4096;

/// An endpoint whose peer is the test: raw bytes in, completions out.
class Victim {
 public:
  explicit Victim(std::size_t streams = 2) {
    std::vector<Fd> ends;
    for (std::size_t i = 0; i < streams; ++i) {
      std::array<int, 2> pair{};
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.data()), 0);
      ends.emplace_back(pair[0]);
      ours_.emplace_back(pair[1]);
    }
    region_ = regions_.add(memory_.data() + kRegion, kRegion, device::MemoryKind::host);
    endpoint_ = std::make_unique<TcpEndpoint>(Rank{1}, std::move(ends), regions_);
  }

  [[nodiscard]] WriteWire write(std::uint64_t total) const {
    return {.region_first = region_.key.first, .region_second = region_.key.second, .offset = 0, .total_bytes = total};
  }
  void send(std::size_t stream, const Bytes& bytes) {
    (void)::send(ours_[stream].get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  void hang_up() { ours_.clear(); }
  /// All that happens without further input.
  std::vector<Completion::Kind> poll() {
    std::vector<Completion::Kind> kinds;
    std::array<Completion, 4> out;
    for (std::uint32_t i = 0; i < kIdleStreamPolls + 2; ++i) {
      const std::size_t got = endpoint_->poll(out);
      for (std::size_t k = 0; k < got; ++k) kinds.push_back(out[k].kind);
    }
    return kinds;
  }
  [[nodiscard]] TcpEndpoint& endpoint() { return *endpoint_; }
  void release() { EXPECT_TRUE(regions_.remove(region_)); }
  [[nodiscard]] bool is_unharmed_outside() const {
    const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
    return std::all_of(memory_.begin(), memory_.begin() + kRegion, is_zero) &&
           std::all_of(memory_.begin() + 2 * kRegion, memory_.end(), is_zero);
  }
  [[nodiscard]] bool is_untouched() const {
    return std::ranges::all_of(memory_, [](std::byte byte) { return byte == std::byte{0}; });
  }

 private:
  Bytes memory_ = Bytes(3 * kRegion);
  RegionTable regions_;
  Registration region_;
  std::vector<Fd> ours_;
  std::unique_ptr<TcpEndpoint> endpoint_;
};

template <class Wire>
void append(Bytes& bytes, const Wire& wire) {
  const auto* from = reinterpret_cast<const std::byte*>(&wire);
  bytes.insert(bytes.end(), from, from + sizeof wire);
}

Bytes frame(FrameWire head, std::size_t payload = 0) {
  Bytes bytes;
  append(bytes, head);
  bytes.resize(bytes.size() + payload, std::byte{0xab});
  return bytes;
}

Bytes write_frame(const WriteWire& write, std::uint32_t size, std::uint16_t flags = kHasNotice) {
  Bytes bytes = frame({.kind = FrameKind::write, .flags = flags, .size_bytes = size});
  append(bytes, write);
  bytes.resize(bytes.size() + size, std::byte{0xab});
  return bytes;
}

void expect_malformed(Victim& victim, const char* what) {
  const auto kinds = victim.poll();
  EXPECT_EQ(std::ranges::count(kinds, Completion::Kind::failed), 1) << what;
  ASSERT_TRUE(victim.endpoint().failure()) << what;
  EXPECT_EQ(victim.endpoint().failure()->code(), ErrorCode::malformed) << what;
  EXPECT_EQ(victim.endpoint().failure()->peer(), Rank{1}) << what;
  EXPECT_TRUE(victim.is_unharmed_outside()) << what;
}

TEST(TcpFrames, WhatIsWellFormedPasses) {
  Victim victim;
  victim.send(0, frame({.kind = FrameKind::message, .size_bytes = 5}, 5));
  victim.send(0, write_frame(victim.write(kRegion), kRegion));
  auto part = victim.write(200);
  victim.send(0, write_frame(part, 100));
  part.offset = 100;
  victim.send(1, write_frame(part, 100));
  victim.send(0, frame({.kind = FrameKind::close}));
  using Kind = Completion::Kind;
  EXPECT_EQ(victim.poll(), (std::vector{Kind::message, Kind::notice, Kind::notice, Kind::closed}));
  EXPECT_FALSE(victim.endpoint().failure());
  EXPECT_TRUE(victim.is_unharmed_outside());
}

TEST(TcpFrames, WritesOutsideOfARegionTouchNothing) {
  const auto attempt = [](const char* what, auto change, std::uint32_t size) {
    Victim victim;
    WriteWire write = victim.write(size);
    change(write);
    victim.send(0, write_frame(write, size));
    expect_malformed(victim, what);
    EXPECT_TRUE(victim.is_untouched()) << what;
  };
  attempt(
      "past the end", [](WriteWire& write) { write.offset = 1; }, kRegion);
  attempt(
      "at the end", [](WriteWire& write) { write.offset = kRegion; }, 1);
  attempt(
      "overflow", [](WriteWire& write) { write.offset = ~0ULL; }, 2);
  attempt(
      "overflow to the front", [](WriteWire& write) { write.offset = ~0ULL - 9; }, 20);
  attempt(
      "unknown slot", [](WriteWire& write) { write.region_first += 1; }, 8);
  attempt(
      "far slot", [](WriteWire& write) { write.region_first = ~0ULL; }, 8);
  attempt(
      "other generation", [](WriteWire& write) { write.region_first += 1ULL << 32; }, 8);
  attempt(
      "guessed number", [](WriteWire& write) { write.region_second ^= 1; }, 8);
}

TEST(TcpFrames, FramesThatBreakTheFormatBreakTheLink) {
  const auto attempt = [](const char* what, std::size_t stream, const Bytes& bytes) {
    Victim victim;
    victim.send(stream, bytes);
    expect_malformed(victim, what);
  };
  attempt("version", 0, frame({.version = 2, .kind = FrameKind::message}));
  attempt("kind 0", 0, frame({.kind = static_cast<FrameKind>(0)}));
  attempt("kind 9", 0, frame({.kind = static_cast<FrameKind>(9)}));
  attempt("message flags", 0, frame({.kind = FrameKind::message, .flags = 1}));
  attempt("long message", 0, frame({.kind = FrameKind::message, .size_bytes = kMessageSizeMax + 1}));
  attempt("endless message", 0, frame({.kind = FrameKind::message, .size_bytes = ~0u}));
  attempt("message on stream 1", 1, frame({.kind = FrameKind::message}));
  attempt("close with a payload", 0, frame({.kind = FrameKind::close, .size_bytes = 1}, 1));
  attempt("close on stream 1", 1, frame({.kind = FrameKind::close}));
  Bytes after = frame({.kind = FrameKind::close});
  append(after, FrameWire{.kind = FrameKind::message});
  attempt("a frame after the close", 0, after);
  attempt("write flags", 0, write_frame(Victim().write(0), 0, 2));
}

TEST(TcpFrames, StripesMustMakeOneWrite) {
  const auto attempt = [](const char* what, auto change, std::uint32_t second_size) {
    Victim victim;
    WriteWire write = victim.write(200);
    victim.send(0, write_frame(write, 150));
    write.offset = 150;
    std::uint16_t flags = kHasNotice;
    change(write, flags);
    victim.send(0, write_frame(write, second_size, flags));
    expect_malformed(victim, what);
  };
  attempt(
      "more than the whole", [](WriteWire&, std::uint16_t&) {}, 51);
  attempt(
      "another total", [](WriteWire& write, std::uint16_t&) { write.total_bytes = 201; }, 50);
  attempt(
      "another notice", [](WriteWire& write, std::uint16_t&) { write.notice = 1; }, 50);
  attempt(
      "no notice", [](WriteWire&, std::uint16_t& flags) { flags = 0; }, 50);
  attempt(
      "an empty stripe", [](WriteWire&, std::uint16_t&) {}, 0);
  Victim victim;
  WriteWire write = victim.write(100);
  victim.send(0, write_frame(write, 101));
  expect_malformed(victim, "a stripe larger than its write");
}

TEST(TcpFrames, UnfinishedWritesAreBounded) {
  Victim victim;
  WriteWire write = victim.write(2);
  for (std::uint32_t i = 0; i <= kIncompleteMax && !victim.endpoint().failure(); ++i) {
    write.write_id = i;
    victim.send(0, write_frame(write, 1));
    if (i % 32 == 0 && i < kIncompleteMax) {
      std::array<Completion, 4> out;
      (void)victim.endpoint().poll(out);
    }
  }
  expect_malformed(victim, "unfinished writes");
}

TEST(TcpFrames, ARegionReleasedInTheMiddleOfAWriteIsNotTouchedAnyMore) {
  Victim victim;
  Bytes bytes = write_frame(victim.write(kRegion), kRegion);
  const Bytes rest(bytes.end() - 2000, bytes.end());
  bytes.resize(bytes.size() - 2000);
  victim.send(0, bytes);
  EXPECT_TRUE(victim.poll().empty());
  victim.release();
  victim.send(0, rest);
  expect_malformed(victim, "released");
}

TEST(TcpFrames, AnEndInTheMiddleOfAFrameIsAFailureOfThePeer) {
  constexpr std::size_t kWhole = sizeof(FrameWire) + sizeof(WriteWire) + 64;
  for (const std::size_t cut : {std::size_t{1}, std::size_t{8}, std::size_t{47}, std::size_t{48}, kWhole - 1}) {
    Victim victim;
    Bytes bytes = write_frame(victim.write(64), 64);
    ASSERT_EQ(bytes.size(), kWhole);
    bytes.resize(cut);
    victim.send(0, bytes);
    EXPECT_TRUE(victim.poll().empty()) << cut;
    victim.hang_up();
    EXPECT_EQ(victim.poll(), std::vector{Completion::Kind::failed}) << cut;
    EXPECT_EQ(victim.endpoint().failure()->code(), ErrorCode::peer_failed) << cut;
  }
}

TEST(TcpFrames, RandomAndMutatedFramesNeverTouchOtherMemory) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    Victim victim;
    for (int i = 0; i < 6; ++i) {
      Bytes bytes;
      switch (random.below(4)) {
        case 0: bytes = frame({.kind = FrameKind::message, .size_bytes = 10}, 10); break;
        case 1: bytes = write_frame(victim.write(100), 100); break;
        case 2: bytes = write_frame(victim.write(300), 100); break;
        default:
          bytes.resize(random.below(200));
          for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
      }
      const std::uint64_t mutations = random.below(3);
      for (std::uint64_t m = 0; m < mutations && !bytes.empty(); ++m) {
        bytes[random.below(std::min<std::uint64_t>(bytes.size(), 48))] = static_cast<std::byte>(random.below(256));
      }
      if (random.happens(10)) bytes.resize(random.below(bytes.size() + 1));
      victim.send(random.below(2), bytes);
      std::array<Completion, 2> out;
      for (int k = 0; k < 4; ++k) {
        for (const Completion& done : std::span(out).first(victim.endpoint().poll(out))) {
          ASSERT_LE(done.message.size(), kMessageSizeMax);
        }
      }
      ASSERT_TRUE(victim.is_unharmed_outside()) << "seed " << seed;
    }
    victim.hang_up();
    (void)victim.poll();
    ASSERT_TRUE(victim.is_unharmed_outside()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace weft::transport::tcp
