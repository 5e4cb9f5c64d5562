#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>
#include <vector>

#include "transport/shm/address.h"
#include "transport/shm/shared_memory.h"
#include "transport/shm/shm_transport.h"

// Links between transports of one process; the contract suite covers what every transport promises.
namespace weft::transport::shm {
namespace {

using namespace std::chrono_literals;
using Kind = Completion::Kind;

std::vector<std::unique_ptr<Transport>> make_ranks(std::uint32_t count, ShmOptions options = {}) {
  std::vector<std::unique_ptr<Transport>> ranks;
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    options.rank = Rank{rank};
    ranks.push_back(*make_shm_transport(options));
  }
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      std::vector<PeerAddress> peers;
      for (std::uint32_t peer = 0; peer < count; ++peer) {
        if (peer != rank) peers.push_back({Rank{peer}, ranks[peer]->address()});
      }
      for (const Connected& connected : ranks[rank]->connect(peers, Deadline::after(20s))) {
        EXPECT_TRUE(connected.endpoint) << connected.endpoint.error().message();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ranks;
}

std::size_t count_descriptors() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

std::size_t count_mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("memfd:weft") != std::string::npos ? 1 : 0;
  return count;
}

TEST(ShmLink, LeavesNoDescriptorAndNoMappingBehind) {
  make_ranks(2);  // What is made once for a process.
  const std::size_t descriptors = count_descriptors();
  const std::size_t mappings = count_mappings();
  for (int round = 0; round < 3; ++round) {
    auto ranks = make_ranks(4);
    std::byte* memory = *allocate_shared_memory(1 << 20);
    const auto region = *ranks[0]->register_memory(memory, 1 << 20, device::MemoryKind::shared);
    EXPECT_TRUE(ranks[1]->endpoint(Rank{0})->load_pointer({region.key, 0, 1 << 20}));
    const std::size_t mapped = count_mappings();
    ranks[1]->endpoint(Rank{0})->close();
    EXPECT_EQ(count_mappings(), mapped - 1) << "close unmaps the peer's memory";
    EXPECT_GT(count_descriptors(), descriptors);
    ranks.clear();
    release_shared_memory(memory);
    EXPECT_EQ(count_descriptors(), descriptors);
    EXPECT_EQ(count_mappings(), mappings);
  }
}

TEST(ShmLink, WritesIntoSharedMemoryArriveWithTheirNotice) {
  auto ranks = make_ranks(2);
  std::byte* memory = *allocate_shared_memory(1 << 20);
  const auto theirs = *ranks[1]->register_memory(memory + 100, 1000, device::MemoryKind::shared);
  std::vector<std::byte> bytes(1000, std::byte{7});
  const auto own = *ranks[0]->register_memory(bytes.data(), bytes.size(), device::MemoryKind::host);
  Endpoint& link = *ranks[0]->endpoint(Rank{1});
  EXPECT_EQ(*link.post_write({&own, 0, 900}, {theirs.key, 50, 900}, 77u, Token{5}), Posted::started);
  EXPECT_EQ(link.post_write({&own, 0, 951}, {theirs.key, 50, 951}, 1u, Token{6}).error().code(),
            ErrorCode::out_of_range);
  EXPECT_EQ(link.post_write({&own, 0, 8}, {own.key, 0, 8}, 1u, Token{7}).error().code(), ErrorCode::unsupported);
  EXPECT_EQ(*link.post_write({}, {}, 78u, Token{8}), Posted::started);

  std::array<Completion, 8> out;
  ASSERT_EQ(ranks[0]->poll(out), 2u);
  EXPECT_EQ(out[0].kind, Kind::written);
  EXPECT_EQ(out[0].token, Token{5});
  EXPECT_EQ(out[1].token, Token{8});
  ASSERT_EQ(ranks[1]->poll(out), 2u);
  EXPECT_EQ(out[0].kind, Kind::notice);
  EXPECT_EQ(out[0].notice, 77u);
  EXPECT_EQ(out[1].notice, 78u);
  EXPECT_EQ(std::count(memory, memory + (1 << 20), std::byte{7}), 900);
  EXPECT_EQ(memory[150], std::byte{7});
  ranks.clear();
  release_shared_memory(memory);
}

TEST(ShmLink, AReusedDescriptorIsNeverTakenForTheOldAllocation) {
  auto ranks = make_ranks(2);
  Endpoint& link = *ranks[0]->endpoint(Rank{1});
  std::byte* first = *allocate_shared_memory(4096);
  first[0] = std::byte{1};
  const auto old_region = *ranks[1]->register_memory(first, 4096, device::MemoryKind::shared);
  const int old_fd = find_shared_memory(first, 1)->fd;
  ASSERT_EQ(**link.load_pointer({old_region.key, 0, 1}), std::byte{1});
  release_shared_memory(first);

  std::byte* second = *allocate_shared_memory(4096);
  second[0] = std::byte{2};
  ASSERT_EQ(find_shared_memory(second, 1)->fd, old_fd) << "the test wants the same number again";
  const auto new_region = *ranks[1]->register_memory(second, 4096, device::MemoryKind::shared);
  ASSERT_NE(new_region.key, old_region.key);
  const std::size_t mappings = count_mappings();
  EXPECT_EQ(**link.load_pointer({new_region.key, 0, 1}), std::byte{2});
  EXPECT_EQ(count_mappings(), mappings) << "the old mapping goes when the new one comes";
  EXPECT_EQ(link.load_pointer({old_region.key, 0, 1}).error().code(), ErrorCode::not_found);
  release_shared_memory(second);
}

TEST(ShmLink, MemoryThatIsNotSharedCannotBeRegisteredAsShared) {
  auto rank = *make_shm_transport({});
  std::vector<std::byte> bytes(10);
  EXPECT_EQ(rank->register_memory(bytes.data(), 10, device::MemoryKind::shared).error().code(),
            ErrorCode::invalid_argument);
  EXPECT_EQ(rank->register_memory(bytes.data(), 10, device::MemoryKind::device).error().code(), ErrorCode::unsupported);
}

TEST(ShmLink, ReadsOfUnmappedMemoryAreErrorsOfTheCallOnly) {
  auto ranks = make_ranks(2);
  Endpoint& link = *ranks[0]->endpoint(Rank{1});
  ASSERT_EQ(link.capabilities().plain_path, PlainPath::read);
  std::vector<std::byte> bytes(100);
  const auto own = *ranks[0]->register_memory(bytes.data(), 100, device::MemoryKind::host);
  const auto nowhere = *ranks[1]->register_memory(reinterpret_cast<std::byte*>(4096), 100, device::MemoryKind::host);
  EXPECT_EQ(link.post_read({&own, 0, 100}, {nowhere.key, 0, 100}, Token{1}).error().code(), ErrorCode::out_of_range);
  EXPECT_FALSE(link.failure());
}

TEST(ShmLink, OneEndThatWantsStagingDecidesForBoth) {
  std::array ranks{*make_shm_transport({.rank = Rank{0}, .plain_copy = PlainCopy::readv}),
                   *make_shm_transport({.rank = Rank{1}, .plain_copy = PlainCopy::staging})};
  std::thread other([&] {
    (void)ranks[1]->connect(std::array{PeerAddress{Rank{0}, ranks[0]->address()}}, Deadline::after(10s));
  });
  (void)ranks[0]->connect(std::array{PeerAddress{Rank{1}, ranks[1]->address()}}, Deadline::after(10s));
  other.join();
  for (const std::uint32_t rank : {0u, 1u}) {
    Endpoint& link = *ranks[rank]->endpoint(Rank{1 - rank});
    EXPECT_EQ(link.capabilities().plain_path, PlainPath::staging);
    std::byte byte{};
    const auto region = *ranks[rank]->register_memory(&byte, 1, device::MemoryKind::host);
    EXPECT_EQ(link.post_read({&region, 0, 1}, {region.key, 0, 1}, Token{1}).error().code(), ErrorCode::unsupported);
  }
}

TEST(ShmLink, ASenderWithoutRoomIsWokenWhenThereIsSome) {
  auto ranks = make_ranks(2);
  Endpoint& link = *ranks[0]->endpoint(Rank{1});
  const std::vector<std::byte> payload(link.capabilities().message_size_max);
  std::size_t posted = 0;
  while (*link.post_message({}, payload) == Posted::started) ++posted;
  ASSERT_TRUE(ranks[0]->arm(Wake::by_sleep)) << "nothing has come back yet";
  std::thread reader([&] {
    std::this_thread::sleep_for(30ms);
    std::array<Completion, 1> out;
    for (std::size_t got = 0; got < posted;) got += ranks[1]->poll(out);
    EXPECT_FALSE(ranks[1]->arm(Wake::by_sleep)) << "the last room is not returned before the next poll";
    EXPECT_EQ(ranks[1]->poll(out), 0u);
    EXPECT_TRUE(ranks[1]->arm(Wake::by_sleep));
    ranks[1]->disarm();
  });
  const Deadline deadline = Deadline::after(10s);
  ranks[0]->sleep(20s);
  ranks[0]->disarm();
  EXPECT_FALSE(deadline.has_passed());
  reader.join();
  EXPECT_EQ(*link.post_message({}, payload), Posted::started);
}

TEST(ShmLink, MoreThanSixteenPeersRaiseFlags) {
  constexpr std::uint32_t kRanks = 20;
  auto ranks = make_ranks(kRanks);
  constexpr std::uint32_t kMessages = 300;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> next;
  std::uint64_t arrived = 0;
  std::array<Completion, 7> out;
  const auto poll = [&](std::uint32_t rank) {
    const std::size_t count = ranks[rank]->poll(out);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint32_t number = 0;
      ASSERT_EQ(out[i].kind, Kind::message);
      std::memcpy(&number, out[i].message.data(), sizeof number);
      ASSERT_EQ(number, (next[{rank, out[i].peer.value()}]++));
      ++arrived;
    }
  };
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    for (std::uint32_t from = 0; from < kRanks; ++from) {
      for (std::uint32_t to = 0; to < kRanks; ++to) {
        if (to == from) continue;
        while (*ranks[from]->endpoint(Rank{to})->post_message(std::as_bytes(std::span(&i, 1)), {}) == Posted::again)
          poll(to);
      }
    }
  }
  const Deadline deadline = Deadline::after(20s);
  while (arrived < std::uint64_t{kMessages} * kRanks * (kRanks - 1) && !deadline.has_passed()) {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) poll(rank);
  }
  EXPECT_EQ(arrived, std::uint64_t{kMessages} * kRanks * (kRanks - 1));
  ranks.erase(ranks.begin() + 3);  // The others hear of it.
  EXPECT_FALSE(ranks[0]->arm(Wake::by_event_fd));
  ASSERT_EQ(ranks[0]->poll(out), 1u);
  EXPECT_EQ(out[0].kind, Kind::failed);
  EXPECT_EQ(out[0].peer, Rank{3});
}

TEST(ShmConnect, EveryWrongAddressIsRefusedWithItsReason) {
  auto rank = *make_shm_transport({.rank = Rank{0}});
  auto other = *make_shm_transport({.rank = Rank{1}});
  const Address right = *decode_address(other->address());
  const auto reason = [&](std::vector<std::byte> address) {
    const auto connected = rank->connect(std::array{PeerAddress{Rank{1}, std::move(address)}}, Deadline::after(5s));
    return connected[0].endpoint ? std::string("connected") : connected[0].endpoint.error().message();
  };
  const auto with = [&](auto&& change) {
    Address address = right;
    change(address);
    return reason(encode(address));
  };
  const Deadline soon = Deadline::after(4s);
  EXPECT_NE(with([](Address& a) { a.place.boot_id[0] ^= std::byte{1}; }).find("another host"), std::string::npos);
  EXPECT_NE(with([](Address& a) { a.place.pid_namespace ^= 1; }).find("another pid namespace"), std::string::npos);
  EXPECT_NE(with([](Address& a) { a.place.start_time ^= 1; }).find("is gone"), std::string::npos);
  EXPECT_NE(with([](Address& a) { a.place.pid = 0x3fffffff; }).find("pidfd_open"), std::string::npos);
  EXPECT_NE(with([](Address& a) { a.token[5] ^= std::byte{1}; }).find("another token"), std::string::npos);
  EXPECT_NE(with([](Address& a) { a.fd = 1'000'000; }).find("open /proc/"), std::string::npos);
  EXPECT_NE(with([](Address& a) { a.fd = 0; }).find("/fd/0"), std::string::npos);
  std::vector<std::byte> bytes = encode(right);
  bytes[0] = std::byte{9};
  EXPECT_NE(reason(bytes).find("version 9"), std::string::npos);
  bytes = encode(right);
  bytes.pop_back();
  EXPECT_NE(reason(bytes).find("cut short"), std::string::npos);
  EXPECT_NE(reason({}).find("cut short"), std::string::npos);
  EXPECT_FALSE(soon.has_passed()) << "a refusal waits for nobody";
}

TEST(ShmConnect, APeerThatDoesNotComeIsNamedWhenTheDeadlinePasses) {
  auto rank = *make_shm_transport({.rank = Rank{0}});
  auto other = *make_shm_transport({.rank = Rank{1}});
  const std::array peers{PeerAddress{Rank{1}, other->address()}};
  const auto connected = rank->connect(peers, Deadline::after(50ms));
  ASSERT_FALSE(connected[0].endpoint);
  EXPECT_EQ(connected[0].endpoint.error().code(), ErrorCode::timeout);
  EXPECT_EQ(connected[0].endpoint.error().peer(), Rank{1});
  // The late one learns at once that nobody waits for it any more.
  const Deadline soon = Deadline::after(4s);
  const auto late = other->connect(std::array{PeerAddress{Rank{0}, rank->address()}}, Deadline::after(5s));
  ASSERT_FALSE(late[0].endpoint);
  EXPECT_NE(late[0].endpoint.error().message().find("refused"), std::string::npos)
      << late[0].endpoint.error().message();
  EXPECT_FALSE(soon.has_passed());
  EXPECT_EQ(other->endpoint(Rank{0}), nullptr);
}

TEST(ShmConnect, ATransportThatIsDestroyedMeanwhileIsSeen) {
  auto rank = *make_shm_transport({.rank = Rank{0}});
  auto other = *make_shm_transport({.rank = Rank{1}});
  const std::array peers{PeerAddress{Rank{1}, other->address()}};
  std::thread leaver([&] {
    std::this_thread::sleep_for(50ms);
    other.reset();
  });
  const auto connected = rank->connect(peers, Deadline::after(10s));
  leaver.join();
  ASSERT_FALSE(connected[0].endpoint);
  EXPECT_EQ(connected[0].endpoint.error().code(), ErrorCode::closed);
}

}  // namespace
}  // namespace weft::transport::shm
