#include "base/wire.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace weft {
namespace {

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

TEST(Wire, ReadsWhatWasWritten) {
  ByteWriter writer;
  writer.number(std::uint8_t{7}).number(std::uint64_t{1} << 40).text("weft").blob({}).number(std::uint16_t{0xffff});
  const auto bytes = std::move(writer).take();
  ByteReader reader(bytes);
  EXPECT_EQ(reader.number<std::uint8_t>(), 7);
  EXPECT_EQ(reader.number<std::uint64_t>(), std::uint64_t{1} << 40);
  EXPECT_EQ(reader.text(), "weft");
  EXPECT_TRUE(reader.blob().empty());
  EXPECT_EQ(reader.number<std::uint16_t>(), 0xffff);
  EXPECT_TRUE(reader.finish("message"));
}

TEST(Wire, TheOrderIsLittleEndianWithLengthsOf32Bits) {
  ByteWriter writer;
  writer.number(std::uint32_t{0x01020304}).text("ab");
  EXPECT_EQ(std::move(writer).take(), bytes_of({4, 3, 2, 1, 2, 0, 0, 0, 'a', 'b'}));
}

TEST(Wire, ALengthBeyondTheEndFailsAndReadsNothing) {
  const auto bytes = bytes_of({0xff, 0xff, 0xff, 0xff, 1, 2, 3});
  ByteReader reader(bytes);
  EXPECT_TRUE(reader.blob().empty());
  EXPECT_TRUE(reader.has_failed());
  EXPECT_EQ(reader.number<std::uint8_t>(), 0) << "every read after the first failure fails";
  const Status status = reader.finish("hello");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::malformed);
  EXPECT_EQ(status.error().doing(), "hello is cut short at byte 4");
}

TEST(Wire, ASizeThatWouldOverflowThePositionFails) {
  const auto bytes = bytes_of({1, 2});
  ByteReader reader(bytes);
  EXPECT_EQ(reader.number<std::uint8_t>(), 1);
  EXPECT_TRUE(reader.raw(std::numeric_limits<std::size_t>::max()).empty());
  EXPECT_TRUE(reader.has_failed());
}

TEST(Wire, ANumberThatIsCutShortIsZero) {
  const auto bytes = bytes_of({1, 2, 3});
  ByteReader reader(bytes);
  EXPECT_EQ(reader.number<std::uint32_t>(), 0U);
  EXPECT_TRUE(reader.has_failed());
  EXPECT_TRUE(reader.text().empty());
}

TEST(Wire, BytesLeftOverAreAnError) {
  const auto bytes = bytes_of({1, 2});
  ByteReader reader(bytes);
  (void)reader.number<std::uint8_t>();
  EXPECT_FALSE(reader.is_exhausted());
  const Status status = reader.finish("reply");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().doing(), "reply has bytes left over at byte 1");
}

TEST(Wire, AnEmptyMessageHasNothingToRead) {
  ByteReader reader{std::span<const std::byte>{}};
  EXPECT_TRUE(reader.is_exhausted());
  EXPECT_TRUE(reader.raw(0).empty());
  EXPECT_FALSE(reader.has_failed());
  (void)reader.number<std::uint8_t>();
  EXPECT_TRUE(reader.has_failed());
}

// Whatever the bytes, no read leaves them (the address sanitizer watches) and what is read never exceeds what is there.
TEST(Wire, RandomBytesNeverLeadOutside) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    std::vector<std::byte> bytes(random.below(40));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.happens(60) ? random.below(8) : random.next());
    ByteReader reader(bytes);
    std::size_t num_read = 0;
    for (int i = 0; i < 12; ++i) {
      switch (random.below(4)) {
        case 0:
          (void)reader.number<std::uint8_t>();
          num_read += reader.has_failed() ? 0 : 1;
          break;
        case 1:
          (void)reader.number<std::uint64_t>();
          num_read += reader.has_failed() ? 0 : 8;
          break;
        case 2: num_read += reader.text().size() + (reader.has_failed() ? 0 : 4); break;
        default: num_read += reader.raw(random.below(20)).size(); break;
      }
      ASSERT_LE(num_read, bytes.size()) << "seed " << seed;
    }
    ASSERT_EQ(reader.finish("noise").has_value(), reader.is_exhausted()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace weft
