#include "transport/shm/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>

#include "transport/shm/region_key.h"

namespace weft::transport::shm {
namespace {

TEST(ShmMemory, IsZeroedAlignedAndFound) {
  constexpr std::size_t kSize = 100'001;
  auto memory = allocate_shared_memory(kSize);
  ASSERT_TRUE(memory) << memory.error().message();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(*memory) % 4096, 0u);
  EXPECT_EQ(std::count(*memory, *memory + kSize, std::byte{0}), static_cast<std::ptrdiff_t>(kSize));
  std::fill(*memory, *memory + kSize, std::byte{1});

  const auto whole = find_shared_memory(*memory, kSize);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->offset, 0u);
  EXPECT_EQ(find_shared_memory(*memory + 100, kSize - 100)->offset, 100u);
  EXPECT_EQ(find_shared_memory(*memory + kSize, 0)->offset, kSize);
  EXPECT_FALSE(find_shared_memory(*memory + 100, kSize - 99));
  EXPECT_FALSE(find_shared_memory(*memory + 100, ~0ULL));
  EXPECT_FALSE(find_shared_memory(*memory - 1, 1));
  int elsewhere = 0;
  EXPECT_FALSE(find_shared_memory(reinterpret_cast<std::byte*>(&elsewhere), 4));

  EXPECT_FALSE(release_shared_memory(*memory + 1));
  EXPECT_TRUE(release_shared_memory(*memory));
  EXPECT_FALSE(release_shared_memory(*memory));
  EXPECT_FALSE(find_shared_memory(*memory, 1));
}

TEST(ShmMemory, NoIdIsUsedTwice) {
  std::uint64_t last = 0;
  for (int i = 0; i < 100; ++i) {
    auto memory = allocate_shared_memory(1);
    ASSERT_TRUE(memory);
    const std::uint64_t id = find_shared_memory(*memory, 1)->id;
    EXPECT_GT(id, last);
    last = id;
    ASSERT_TRUE(release_shared_memory(*memory));
  }
}

TEST(ShmMemory, BelongsToItsOwnerAloneAndCannotShrink) {
  const mode_t before = ::umask(0);
  auto memory = allocate_shared_memory(5000);
  ::umask(before);
  ASSERT_TRUE(memory);
  const int fd = find_shared_memory(*memory, 1)->fd;
  struct stat info {};
  ASSERT_EQ(::fstat(fd, &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(info.st_nlink, 0u) << "it has a name";
  EXPECT_EQ(::fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  EXPECT_NE(::ftruncate(fd, 4096), 0);
  EXPECT_EQ(static_cast<std::size_t>(info.st_blocks) * 512, 4096u + 8192u) << "not all of it is reserved";
  ASSERT_TRUE(release_shared_memory(*memory));
}

TEST(ShmMemory, ASizeThatNoMachineHasIsAnErrorWithBothNumbers) {
  EXPECT_EQ(allocate_shared_memory(0).error().code(), ErrorCode::invalid_argument);
  EXPECT_EQ(allocate_shared_memory(~0ULL).error().code(), ErrorCode::limit_exceeded);
  const auto memory = allocate_shared_memory(1ULL << 50);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().code(), ErrorCode::limit_exceeded);
  EXPECT_NE(memory.error().message().find("1125899906846720"), std::string::npos) << memory.error().message();
  EXPECT_NE(memory.error().message().find("available"), std::string::npos) << memory.error().message();
}

TEST(ShmMemory, TheFileSizeLimitIsAnErrorAndNoSignal) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{64 << 10, 64 << 10};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto memory = allocate_shared_memory(128 << 10);
    const bool is_right = !memory && memory.error().code() == ErrorCode::limit_exceeded &&
                          memory.error().message().find("available 64K") != std::string::npos;
    std::_Exit(is_right && allocate_shared_memory(32 << 10) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(ShmMemory, TooFewFileDescriptorsAreAnError) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{3, 3};
    ::setrlimit(RLIMIT_NOFILE, &limit);
    const auto memory = allocate_shared_memory(4096);
    std::_Exit(!memory && memory.error().code() == ErrorCode::limit_exceeded ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(ShmRegionKey, SaysWhatWasPutIn) {
  for (const std::uint64_t offset : {0ULL, 1ULL, (1ULL << 22) - 1, 1ULL << 22, (1ULL << 42) - 1}) {
    for (const int fd : {0, 5, (1 << 20) - 1}) {
      const auto key = encode_shared_key(fd, 0x123456789abcULL, offset, (1ULL << 42) - 1 - offset);
      ASSERT_TRUE(key);
      const KeyContent content = decode_key(*key);
      EXPECT_TRUE(content.is_shared);
      EXPECT_EQ(content.fd, fd);
      EXPECT_EQ(content.offset, offset);
      EXPECT_EQ(content.size_bytes, (1ULL << 42) - 1 - offset);
      EXPECT_EQ(content.id_bits, 0x123456789abcULL & ((1u << 23) - 1));
    }
  }
  EXPECT_FALSE(encode_shared_key(1 << 20, 1, 0, 0));
  EXPECT_FALSE(encode_shared_key(1, 1, 1ULL << 42, 0));
  EXPECT_FALSE(encode_shared_key(1, 1, 0, 1ULL << 42));
  int word = 0;
  const KeyContent plain = decode_key(encode_plain_key(reinterpret_cast<std::byte*>(&word), 4));
  EXPECT_FALSE(plain.is_shared);
  EXPECT_EQ(plain.address, reinterpret_cast<std::uint64_t>(&word));
  EXPECT_EQ(plain.size_bytes, 4u);
}

}  // namespace
}  // namespace weft::transport::shm
