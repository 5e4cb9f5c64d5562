#include "tools/read_file.h"

#include <unistd.h>

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace weft::tools {
namespace {

TEST(ReadFile, GivesAllBytesOfAFile) {
  char path[] = "/tmp/weft_read_file_XXXXXX";
  const int fd = ::mkstemp(path);
  ASSERT_GE(fd, 0);
  const std::string text("a\0b\n", 4);
  ASSERT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ::close(fd);
  const auto got = read_file(path, "plan");
  ::unlink(path);
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(*got, text);
}

TEST(ReadFile, AFileThatIsNotThereIsNotFound) {
  const auto got = read_file("/nonexistent/plan.txt", "plan");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), ErrorCode::not_found);
  EXPECT_NE(got.error().message().find("/nonexistent/plan.txt"), std::string::npos) << got.error().message();
}

TEST(ReadFile, AFolderIsAnError) {
  const auto got = read_file("/", "plan");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), ErrorCode::system) << got.error().message();
}

TEST(ReadFile, ADeviceWithoutAnEndIsCutOff) {
  const auto got = read_file("/dev/zero", "plan");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), ErrorCode::limit_exceeded) << got.error().message();
}

}  // namespace
}  // namespace weft::tools
