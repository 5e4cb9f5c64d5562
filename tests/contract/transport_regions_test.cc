#include <gtest/gtest.h>

#include <algorithm>

#include "tests/contract/contract_backends.h"

// What every transport promises about registered memory: writes, reads and loads.
namespace weft::transport::contract {
namespace {

using Kind = Completion::Kind;

#define WEFT_SKIP_WITHOUT_WRITE()                          \
  if (capabilities().large_path != LargePath::write) {     \
    GTEST_SKIP() << "this link moves large data by reads"; \
  }
#define WEFT_SKIP_WITHOUT_READ()                                                                      \
  if (capabilities().large_path != LargePath::read || capabilities().plain_path != PlainPath::read) { \
    GTEST_SKIP() << "this link cannot read plain memory";                                             \
  }
#define WEFT_SKIP_WITHOUT_MAPPING()                       \
  if (!capabilities().maps_shared_memory) {               \
    GTEST_SKIP() << "this link maps no memory of a peer"; \
  }

TEST_P(TransportContract, ANoticeComesAfterTheBytesOfItsWrite) {
  WEFT_SKIP_WITHOUT_WRITE();
  const std::vector<std::size_t> sizes{1, 7, 64, 4096, 65'537, (1 << 20) + 3, 8 << 20};
  const Block& source = block(kA, 8 << 20);
  const Block& destination = block(kB, 8 << 20);
  on_seen_ = [&](Rank rank, const Completion& done) {
    if (rank != kB) return;
    ASSERT_EQ(done.kind, Kind::notice);
    EXPECT_TRUE(has_pattern(destination.bytes.first(sizes[done.notice]), done.notice)) << sizes[done.notice];
  };
  for (std::uint32_t i = 0; i < sizes.size(); ++i) {
    fill_pattern(source.bytes.first(sizes[i]), i);
    ASSERT_FALSE(write(kA, kB, source.local(0, sizes[i]), destination.remote(0, sizes[i]), i));
    drive_until([&] { return has_notice(kB, i) && tokens_open() == 0; });
  }
}

TEST_P(TransportContract, AWriteWithoutNoticeArrivesSilently) {
  WEFT_SKIP_WITHOUT_WRITE();
  const Block& source = block(kA, 100'000);
  const Block& destination = block(kB, 100'000);
  fill_pattern(source.bytes, 5);
  ASSERT_FALSE(write(kA, kB, source.local(0, 100'000), destination.remote(0, 100'000)));
  drive_until([&] { return tokens_open() == 0 && has_pattern(destination.bytes, 5); });
  EXPECT_TRUE(log_[kB].empty());
}

TEST_P(TransportContract, AWriteOfNothingIsASignal) {
  WEFT_SKIP_WITHOUT_WRITE();
  const Block& destination = block(kB, 16);
  ASSERT_FALSE(write(kA, kB, {}, {}, 0xffffffffu));
  ASSERT_FALSE(write(kA, kB, {}, destination.remote(16, 0), 0u));
  ASSERT_FALSE(write(kA, kB, {}, {}));
  drive_until([&] { return has_notice(kB, 0xffffffffu) && has_notice(kB, 0) && tokens_open() == 0; });
  EXPECT_EQ(log_[kB].size(), 2u);
}

TEST_P(TransportContract, SeveralWritesInFlightWithMessagesBetweenThem) {
  WEFT_SKIP_WITHOUT_WRITE();
  constexpr std::uint32_t kWrites = 48;
  constexpr std::size_t kStride = 700'000;
  std::map<Rank, const Block*> source;
  std::map<Rank, const Block*> destination;
  for (const Rank rank : {kA, kB}) {
    source[rank] = &block(rank, kWrites * kStride);
    destination[rank] = &block(rank, kWrites * kStride);
    fill_pattern(source[rank]->bytes, rank.value());
  }
  const auto size_of_write = [](std::uint32_t i) { return i % 3 == 0 ? i * 11 + 1 : kStride - i; };
  for (std::uint32_t i = 0; i < kWrites; ++i) {
    for (const Rank from : {kA, kB}) {
      const Rank to = from == kA ? kB : kA;
      ASSERT_FALSE(write(from, to, source[from]->local(i * kStride, size_of_write(i)),
                         destination[to]->remote(i * kStride, size_of_write(i)), i));
      ASSERT_FALSE(send(from, to, std::as_bytes(std::span(&i, 1))));
    }
  }
  drive_until([&] { return tokens_open() == 0 && log_[kA].size() == 3 * kWrites && log_[kB].size() == 3 * kWrites; });
  for (const Rank to : {kA, kB}) {
    const Rank from = to == kA ? kB : kA;
    for (std::uint32_t i = 0; i < kWrites; ++i) {
      EXPECT_TRUE(has_notice(to, i));
      EXPECT_TRUE(std::ranges::equal(destination[to]->bytes.subspan(i * kStride, size_of_write(i)),
                                     source[from]->bytes.subspan(i * kStride, size_of_write(i))));
    }
    std::uint32_t next = 0;
    for (const Seen& seen : log_[to]) {
      if (seen.kind != Kind::message) continue;
      EXPECT_TRUE(std::ranges::equal(seen.message, std::as_bytes(std::span(&next, 1))));
      ++next;
    }
  }
}

TEST_P(TransportContract, UnalignedSlicesTouchNothingElse) {
  WEFT_SKIP_WITHOUT_WRITE();
  const Block& source = block(kA, 4096);
  const Block& destination = block(kB, 4096);
  fill_pattern(source.bytes, 9);
  for (std::uint32_t offset = 1; offset < 16; ++offset) {
    std::ranges::fill(destination.bytes, std::byte{0xee});
    const std::size_t size = 1000 + 13 * offset;
    ASSERT_FALSE(write(kA, kB, source.local(17 - offset, size), destination.remote(offset, size), offset));
    drive_until([&] { return has_notice(kB, offset) && tokens_open() == 0; });
    EXPECT_TRUE(std::ranges::equal(destination.bytes.subspan(offset, size), source.bytes.subspan(17 - offset, size)));
    EXPECT_EQ(std::ranges::count(destination.bytes.first(offset), std::byte{0xee}), offset);
    EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(destination.bytes.subspan(offset + size), std::byte{0xee})),
              4096 - offset - size);
  }
}

TEST_P(TransportContract, AWriteOf64MiBIsIntact) {
  WEFT_SKIP_WITHOUT_WRITE();
  constexpr std::size_t kSize = 64 << 20;
  const Block& source = block(kA, kSize);
  const Block& destination = block(kB, kSize);
  fill_pattern(source.bytes, 64);
  ASSERT_FALSE(write(kA, kB, source.local(0, kSize), destination.remote(0, kSize), 1));
  drive_until([&] { return has_notice(kB, 1) && tokens_open() == 0; });
  EXPECT_TRUE(std::ranges::equal(source.bytes, destination.bytes));
}

TEST_P(TransportContract, ALocalSliceOutsideOfItsRegionIsRefusedAndHarmless) {
  const Block& source = block(kA, 100);
  const Block& destination = block(kB, 100);
  const bool is_write = capabilities().large_path == LargePath::write;
  const auto attempt = [&](LocalSlice local, std::uint64_t size) {
    return is_write ? write(kA, kB, local, destination.remote(0, size), 1)
                    : read(kA, kB, local, destination.remote(0, size));
  };
  EXPECT_EQ(attempt(source.local(0, 101), 101), ErrorCode::out_of_range);
  EXPECT_EQ(attempt(source.local(101, 1), 1), ErrorCode::out_of_range);
  EXPECT_EQ(attempt(source.local(~0ULL, 2), 2), ErrorCode::out_of_range);
  EXPECT_EQ(attempt(source.local(50, ~0ULL - 10), ~0ULL - 10), ErrorCode::out_of_range);
  EXPECT_EQ(attempt(source.local(0, 10), 11), ErrorCode::out_of_range) << "sizes differ";
  ASSERT_FALSE(send(kA, kB, pattern(1, 8)));
  drive_until([&] { return count(kB, Kind::message) == 1; });
  EXPECT_FALSE(link(kA, kB).failure());
}

TEST_P(TransportContract, AWriteOutsideOfThePeersRegionBreaksTheLinkAndNoMemory) {
  WEFT_SKIP_WITHOUT_WRITE();
  for (const std::uint64_t offset : {std::uint64_t{1}, std::uint64_t{100}, ~std::uint64_t{0}, ~std::uint64_t{99}}) {
    start(2);
    const Block& source = block(kA, 100);
    const Block& around = block(kB, 300);
    const auto inner = transport(kB).register_memory(around.bytes.data() + 100, 100, device::MemoryKind::host);
    fill_pattern(source.bytes, 1);
    (void)write(kA, kB, source.local(0, 100), {inner->key, offset, 100}, 1);
    drive_until([&] { return count(kA, Kind::failed) == 1 && count(kB, Kind::failed) == 1; });
    EXPECT_EQ(link(kA, kB).failure()->code(), ErrorCode::peer_failed);
    EXPECT_EQ(link(kA, kB).failure()->peer(), kB);
    EXPECT_EQ(link(kB, kA).failure()->peer(), kA);
    EXPECT_FALSE(has_notice(kB, 1));
    EXPECT_EQ(std::ranges::count(around.bytes, std::byte{0}), 300);
  }
}

TEST_P(TransportContract, AReleasedRegionCannotBeWritten) {
  WEFT_SKIP_WITHOUT_WRITE();
  const Block& source = block(kA, 100);
  std::span<std::byte> memory = rig_->allocate(kB, 100, device::MemoryKind::host);
  RegionKey last;
  for (int round = 0; round < 1000; ++round) {
    const auto registration = transport(kB).register_memory(memory.data(), 100, device::MemoryKind::host);
    ASSERT_TRUE(registration);
    EXPECT_NE(registration->key, last) << "the key of a released region names another one";
    last = registration->key;
    transport(kB).release_memory(*registration);
  }
  fill_pattern(source.bytes, 1);
  (void)write(kA, kB, source.local(0, 100), {last, 0, 100}, 1);
  drive_until([&] { return count(kA, Kind::failed) == 1 && count(kB, Kind::failed) == 1; });
  EXPECT_EQ(std::ranges::count(memory, std::byte{0}), 100);
}

TEST_P(TransportContract, ReadsBringThePeersBytes) {
  WEFT_SKIP_WITHOUT_READ();
  constexpr std::size_t kSize = (4 << 20) + 5;
  const Block& destination = block(kA, kSize);
  const Block& source = block(kB, kSize);
  fill_pattern(source.bytes, 3);
  std::uint64_t at = 0;
  for (const std::uint64_t size :
       {std::uint64_t{1}, std::uint64_t{4095}, std::uint64_t{1 << 20}, kSize - 4096 - (1 << 20)}) {
    ASSERT_FALSE(read(kA, kB, destination.local(at, size), source.remote(at, size)));
    at += size;
  }
  drive_until([&] { return tokens_open() == 0; });
  EXPECT_TRUE(has_pattern(destination.bytes, 3));
  EXPECT_EQ(count(kA, Kind::read), 4u);
}

TEST_P(TransportContract, AReadOutsideOfThePeersRegionIsNoSuccess) {
  WEFT_SKIP_WITHOUT_READ();
  const Block& destination = block(kA, 100);
  const Block& source = block(kB, 100);
  const auto error = read(kA, kB, destination.local(0, 100), source.remote(1, 100));
  if (error) {
    EXPECT_EQ(error, ErrorCode::out_of_range);
  } else {
    drive_until([&] { return count(kA, Kind::failed) == 1; });
  }
  EXPECT_EQ(count(kA, Kind::read), 0u);
}

TEST_P(TransportContract, ALinkThatCannotReadSaysSo) {
  if (capabilities().large_path == LargePath::read) GTEST_SKIP() << "this link reads";
  const Block& destination = block(kA, 100);
  const Block& source = block(kB, 100);
  EXPECT_EQ(read(kA, kB, destination.local(0, 100), source.remote(0, 100)), ErrorCode::unsupported);
  if (!capabilities().maps_shared_memory) {
    EXPECT_EQ(link(kA, kB).load_pointer(source.remote(0, 100)).error().code(), ErrorCode::unsupported);
  }
}

TEST_P(TransportContract, SharedMemoryOfThePeerCanBeLoadedAndStored) {
  WEFT_SKIP_WITHOUT_MAPPING();
  const Block& theirs = block(kB, 10'000, device::MemoryKind::shared);
  fill_pattern(theirs.bytes, 4);
  const auto pointer = link(kA, kB).load_pointer(theirs.remote(100, 9'900));
  ASSERT_TRUE(pointer) << pointer.error().message();
  EXPECT_TRUE(std::equal(*pointer, *pointer + 9'900, theirs.bytes.data() + 100));
  (*pointer)[7] = std::byte{0x5a};
  EXPECT_EQ(theirs.bytes[107], std::byte{0x5a});
  EXPECT_EQ(link(kA, kB).load_pointer(theirs.remote(100, 9'901)).error().code(), ErrorCode::out_of_range);
  EXPECT_EQ(link(kA, kB).load_pointer(theirs.remote(~0ULL, 2)).error().code(), ErrorCode::out_of_range);
  const Block& plain = block(kB, 100);
  EXPECT_EQ(link(kA, kB).load_pointer(plain.remote(0, 1)).error().code(), ErrorCode::unsupported);
}

}  // namespace
}  // namespace weft::transport::contract
