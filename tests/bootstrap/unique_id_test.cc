#include <thread>

#include <gtest/gtest.h>

#include "bootstrap/identity.h"
#include "bootstrap/session.h"
#include "job_fixture.h"

namespace weft::bootstrap::testing {
namespace {

TEST(UniqueIds, CarryAJobToItsRanks) {
  auto founded = found_job(3, settings_of({{"WEFT_INTERFACE", "lo"}}));
  ASSERT_TRUE(founded) << founded.error().message();
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      const auto identity = identity_of(founded->id, Rank{rank}, 3);
      ASSERT_TRUE(identity) << identity.error().message();
      auto session = join(*identity, settings_of());
      ASSERT_TRUE(session) << session.error().message();
      EXPECT_TRUE((*session)->barrier((*session)->world(), "met", soon()));
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(founded->service->wait_until_done(soon()));
}

TEST(UniqueIds, AnyChangedByteIsNoticed) {
  const auto founded = found_job(1, settings_of({{"WEFT_INTERFACE", "lo"}}));
  ASSERT_TRUE(founded);
  for (std::size_t i = 0; i < UniqueId::kSize; ++i) {
    UniqueId changed = founded->id;
    changed.bytes[i] ^= std::byte{4};
    const auto identity = identity_of(changed, Rank{0}, 1);
    ASSERT_FALSE(identity) << i;
    EXPECT_EQ(identity.error().code(), ErrorCode::malformed);
  }
  EXPECT_FALSE(identity_of(UniqueId{}, Rank{0}, 1));
  EXPECT_EQ(identity_of(founded->id, Rank{1}, 1).error().code(), ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace weft::bootstrap::testing
