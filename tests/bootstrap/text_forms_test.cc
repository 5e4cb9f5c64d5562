#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/wire.h"
#include "bootstrap/address.h"
#include "bootstrap/port_owner.h"
#include "bootstrap/rank_list.h"

namespace weft::bootstrap {
namespace {

std::vector<Rank> ranks(std::initializer_list<std::uint32_t> values) {
  std::vector<Rank> list;
  for (const auto value : values) list.emplace_back(value);
  return list;
}

TEST(Address, IsReadAndWritten) {
  for (const char* text : {"node7:29400", "10.0.0.1:0", "[::1]:65535", "[fe80::1%eth0]:1"}) {
    const auto address = parse_host_port(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(format_host_port(address->host, address->port), text);
  }
  EXPECT_EQ(parse_host_port("\t 10.0.0.1:80\n")->host, "10.0.0.1");
  for (const char* text : {"", ":", "node", "node:", ":80", "node:65536", "node:-1", "node:8a", "::1:80", "[::1]",
                           "[]:80", "a b:80", "node:80:90"}) {
    const auto address = parse_host_port(text);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().code(), ErrorCode::malformed);
  }
}

TEST(Address, KnowsLoopback) {
  for (const char* host : {"localhost", "127.0.0.1", "127.9.9.9", "::1"}) EXPECT_TRUE(is_loopback_host(host)) << host;
  for (const char* host : {"", "128.0.0.1", "::2", "localhost.example", "127.0.0.1.example"}) {
    EXPECT_FALSE(is_loopback_host(host)) << host;
  }
}

TEST(RankList, IsShortForPeople) {
  EXPECT_EQ(describe_ranks(ranks({3})), "rank 3");
  EXPECT_EQ(describe_ranks(ranks({3, 7, 8, 9})), "ranks 3, 7-9");
  EXPECT_EQ(describe_ranks(ranks({0, 1, 5, 7, 8}), 2), "ranks 0-1, 5 and 2 more");
}

TEST(RankList, RoundTripsInFewBytes) {
  const auto size_of = [](const std::vector<Rank>& members) {
    ByteWriter writer;
    encode_members(members, writer);
    const auto back = decode_members(writer.bytes(), members.size());
    EXPECT_TRUE(back && *back == members);
    return writer.bytes().size();
  };
  std::vector<Rank> world;
  std::vector<Rank> every_eighth_descending;
  for (std::uint32_t i = 0; i < 10'000; ++i) world.emplace_back(i);
  for (std::uint32_t i = 1'000; i-- > 0;) every_eighth_descending.emplace_back(8 * i);
  EXPECT_EQ(size_of(world), 12U);
  EXPECT_EQ(size_of(every_eighth_descending), 12U);
  EXPECT_EQ(size_of(ranks({7})), 12U);
  Random random{3};
  for (int round = 0; round < 100; ++round) {
    std::vector<Rank> members(1 + random.below(20));
    for (Rank& member : members) member = Rank{static_cast<std::uint32_t>(random.below(50))};
    EXPECT_LE(size_of(members), 12 * members.size());
  }
}

TEST(RankList, HugeCountsAreRefusedBeforeTheyCost) {
  ByteWriter writer;
  writer.number(0U).number(1U).number(0xffffffffU);
  EXPECT_FALSE(decode_members(writer.bytes(), 100));
  EXPECT_FALSE(decode_members(writer.bytes().first(11), 100));
}

TEST(PortOwner, IsFoundInAGivenTree) {
  namespace fs = std::filesystem;
  std::string root = ::testing::TempDir() + "weft_proc_XXXXXX";
  ASSERT_NE(mkdtemp(root.data()), nullptr);
  fs::create_directories(root + "/net");
  fs::create_directories(root + "/4711/fd");
  std::ofstream(root + "/net/tcp")
      << "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
      << "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77001 1 0\n"
      << "   1: 0100007F:1F91 0100007F:0001 01 00000000:00000000 00:00000000 00000000     0        0 77002 1 0\n";
  std::ofstream(root + "/4711/comm") << "nc\n";
  fs::create_symlink("socket:[77001]", root + "/4711/fd/3");
  EXPECT_EQ(find_port_owner(8080, root), "nc (pid 4711)");
  EXPECT_EQ(find_port_owner(8081, root), "") << "connected, not listening";
  EXPECT_EQ(find_port_owner(80, root), "");
  EXPECT_EQ(find_port_owner(80, root + "/none"), "");
  fs::remove_all(root);
}

}  // namespace
}  // namespace weft::bootstrap
