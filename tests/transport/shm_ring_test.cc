#include "transport/shm/ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/random.h"

namespace weft::transport::shm {
namespace {

constexpr RingGeometry kSmall{.num_lines = 64, .bulk_size = 32 << 10};

/// A ring in a memory file, with its bulk area mapped twice as in production.
struct TestRing {
  explicit TestRing(RingGeometry geometry = kSmall)
      : file(*create_memory_file("test", geometry.file_size())),
        memory(*map_file_mirrored(file.get(), 0, geometry.file_size(), geometry.bulk_size)),
        writer(memory.data(), geometry),
        reader(memory.data(), geometry) {}
  Descriptor file;
  Mapping memory;
  RingWriter writer;
  RingReader reader;
};

std::vector<std::byte> bytes_of(std::uint64_t seed, std::size_t size) {
  Random random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
  return bytes;
}

TEST(ShmRing, FreshMemoryHoldsNothing) {
  TestRing ring;
  EXPECT_FALSE(ring.reader.has_next());
}

TEST(ShmRing, EverySizeSurvivesEveryWrapAround) {
  TestRing ring;
  const std::size_t most = kSmall.message_size_max();
  EXPECT_GE(most, 16u << 10);
  for (std::size_t size = 0; size <= most; size += size < 300 ? 1 : 37) {
    const auto bytes = bytes_of(size, size);
    const std::size_t header = std::min<std::size_t>(size, size % 71);
    ASSERT_TRUE(ring.writer.try_write(std::span(bytes).first(header), std::span(bytes).subspan(header))) << size;
    ASSERT_TRUE(ring.reader.has_next());
    const auto item = ring.reader.take();
    ASSERT_NE(item.kind, LineKind::senseless);
    ASSERT_EQ(item.kind, size <= Line::kInlineMax ? LineKind::small : LineKind::large);
    ASSERT_TRUE(std::ranges::equal(item.bytes, bytes)) << size;
    ASSERT_FALSE(ring.reader.has_next());
    (void)ring.reader.return_room();
  }
}

TEST(ShmRing, SmallCopyCopiesEverySize) {
  const auto source = bytes_of(1, 64);
  for (std::size_t size = 0; size <= 64; ++size) {
    std::vector<std::byte> place(80, std::byte{0xee});
    small_copy(place.data() + 8, source.data(), size);
    EXPECT_TRUE(std::equal(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(size), place.begin() + 8))
        << size;
    EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(place, std::byte{0xee})),
              80 - size +
                  static_cast<std::size_t>(
                      std::count(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(size), std::byte{0xee})));
  }
}

TEST(ShmRing, AFullRingRefusesAndKeepsALineForTheLastWord) {
  TestRing ring;
  std::size_t written = 0;
  while (ring.writer.try_write({}, {})) ++written;
  EXPECT_EQ(written, kSmall.num_lines - 1);
  EXPECT_FALSE(ring.writer.try_notice(1));
  EXPECT_TRUE(ring.reader.is_writer_waiting());
  EXPECT_FALSE(ring.writer.has_room_after_refusal());
  ring.writer.write_last(LineKind::closed);
  for (std::size_t i = 0; i < written; ++i) {
    ASSERT_TRUE(ring.reader.has_next());
    ASSERT_EQ(ring.reader.take().kind, LineKind::small);
  }
  ASSERT_TRUE(ring.reader.has_next());
  EXPECT_EQ(ring.reader.take().kind, LineKind::closed);
  EXPECT_FALSE(ring.reader.has_next());
}

TEST(ShmRing, RoomComesBackInEighthsAndTheWaitingWriterSeesIt) {
  TestRing ring;
  const std::vector<std::byte> large(kSmall.message_size_max());
  ASSERT_TRUE(ring.writer.try_write({}, large));
  ASSERT_TRUE(ring.writer.try_write({}, large));
  EXPECT_FALSE(ring.writer.try_write({}, large));
  ASSERT_NE(ring.reader.take().kind, LineKind::senseless);
  EXPECT_TRUE(ring.reader.owes_room());
  EXPECT_FALSE(ring.writer.has_room_after_refusal());
  EXPECT_TRUE(ring.reader.return_room());
  EXPECT_TRUE(ring.reader.is_writer_waiting());
  EXPECT_TRUE(ring.writer.has_room_after_refusal());
  EXPECT_TRUE(ring.writer.try_write({}, large));
  EXPECT_FALSE(ring.reader.is_writer_waiting());
  // One small message alone is not worth a line that moves.
  ASSERT_NE(ring.reader.take().kind, LineKind::senseless);
  ASSERT_TRUE(ring.reader.return_room());
  ASSERT_TRUE(ring.writer.try_write({}, std::span(large).first(8)));
  ASSERT_NE(ring.reader.take().kind, LineKind::senseless);
  ASSERT_TRUE(ring.reader.return_room());
  ASSERT_NE(ring.reader.take().kind, LineKind::senseless);
  EXPECT_FALSE(ring.reader.return_room());
}

TEST(ShmRing, WordsThatMakeNoSenseAreNoMessage) {
  for (const std::uint64_t word :
       {std::uint64_t{0x1'0000'0000}, std::uint64_t{0x1'f000'0000},
        std::uint64_t{0x1'1000'0000 | (Line::kInlineMax + 1)}, std::uint64_t{0x1'2fff'ffff}}) {
    TestRing ring;
    auto* first = reinterpret_cast<Line*>(ring.memory.data() + kPageSize);
    first->control.store(word);
    ASSERT_TRUE(ring.reader.has_next());
    EXPECT_EQ(ring.reader.take().kind, LineKind::senseless) << word;
  }
}

/// Every word of every payload looks like the control word of a line to come or of one that was.
TEST(ShmRing, NoPayloadIsEverTakenForAFlag) {
  constexpr std::uint64_t kMessages = 1'000'000;
  TestRing ring;
  const auto size_of = [](Random& random) { return random.happens(90) ? random.below(9) * 8 : random.below(80) * 8; };
  const auto word_of = [](std::uint64_t message, std::uint64_t position) {
    return ((message + 1 + position % 130 - 65) << 32) | (std::uint64_t{1 + position % 5} << 28) | (position % 57);
  };
  std::thread writer([&] {
    Random random(7);
    std::vector<std::uint64_t> words;
    for (std::uint64_t message = 0; message < kMessages; ++message) {
      words.resize(size_of(random) / 8);
      for (std::size_t i = 0; i < words.size(); ++i) words[i] = word_of(message, i);
      while (!ring.writer.try_write({}, std::as_bytes(std::span(words)))) std::this_thread::yield();
    }
  });
  Random random(7);
  std::uint64_t wrong = 0;
  for (std::uint64_t message = 0; message < kMessages; ++message) {
    while (!ring.reader.has_next()) std::this_thread::yield();
    const auto item = ring.reader.take();
    const std::size_t size = size_of(random);
    if (item.kind == LineKind::senseless || item.bytes.size() != size) {
      ++wrong;
      break;
    }
    for (std::size_t i = 0; i < size / 8; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, item.bytes.data() + 8 * i, 8);
      wrong += word == word_of(message, i) ? 0 : 1;
    }
    (void)ring.reader.return_room();
  }
  EXPECT_EQ(wrong, 0u);
  if (wrong != 0) std::_Exit(1);  // The writer would wait for ever.
  writer.join();
}

TEST(ShmRing, ManyPeersShareABoundedSpace) {
  for (const std::size_t peers : {1u, 2u, 7u, 15u, 16u, 63u, 128u, 255u}) {
    const RingGeometry geometry = ring_geometry(peers);
    EXPECT_TRUE(geometry.is_valid());
    EXPECT_GE(geometry.message_size_max(), 16u << 10);
    EXPECT_LE(peers * geometry.file_size(), 12u << 20) << peers;
  }
}

}  // namespace
}  // namespace weft::transport::shm
