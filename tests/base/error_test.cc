#include "base/error.h"

#include <cerrno>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Error, SaysWhatFailedAndWhatToDo) {
  const Error error{ErrorCode::not_found, "open interface eth7", "Choose one of: lo, eth0"};
  EXPECT_EQ(error.message(), "not found: open interface eth7. Choose one of: lo, eth0");
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_FALSE(error.peer());
  EXPECT_EQ(error.system_errno(), 0);
}

TEST(Error, WithoutRemedyEndsAfterTheFact) { EXPECT_EQ((Error{ErrorCode::closed, "post"}).message(), "closed: post"); }

TEST(Error, CarriesTheErrnoAndThePeer) {
  const Error error =
      Error::from_errno(ErrorCode::peer_failed, "read from 10.0.0.1:99", ECONNRESET, "Look at rank 3").about(Rank{3});
  EXPECT_EQ(error.message(), "peer failed: read from 10.0.0.1:99 (Connection reset by peer) [rank 3]. Look at rank 3");
  EXPECT_EQ(error.system_errno(), ECONNRESET);
  ASSERT_TRUE(error.peer());
  EXPECT_EQ(*error.peer(), Rank{3});
}

TEST(Error, NamesARankOnce) {
  const Error there = Error{ErrorCode::closed, "aborted", "Look there"}.about(Rank{3});
  const Error here = Error{ErrorCode::closed, "rank 1 reports: " + there.message()};
  EXPECT_EQ(here.about(Rank{3}).message(), "closed: rank 1 reports: closed: aborted [rank 3]. Look there");
  EXPECT_EQ(here.about(Rank{1}).message(), "closed: rank 1 reports: closed: aborted [rank 3]. Look there [rank 1]");
}

TEST(Error, ContextIsPutInFrontAndNothingIsLost) {
  const Error inner = Error::from_errno(ErrorCode::system, "bind", EACCES, "Use a port over 1023").about(Rank{1});
  const Error outer = inner.within("start the service");
  EXPECT_EQ(outer.doing(), "start the service: bind");
  EXPECT_EQ(outer.remedy(), "Use a port over 1023");
  EXPECT_EQ(outer.system_errno(), EACCES);
  EXPECT_EQ(outer.code(), ErrorCode::system);
  EXPECT_EQ(outer.peer(), Rank{1});
  EXPECT_EQ(inner.doing(), "bind") << "an Error is immutable";
}

TEST(Error, EveryCodeHasItsOwnName) {
  std::set<std::string_view> names;
  constexpr int kCodes = static_cast<int>(ErrorCode::system) + 1;
  for (int code = 0; code < kCodes; ++code) names.insert(name_of(static_cast<ErrorCode>(code)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kCodes));
  EXPECT_FALSE(names.contains("unknown"));
}

}  // namespace
}  // namespace weft
