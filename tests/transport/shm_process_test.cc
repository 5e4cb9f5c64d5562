#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <functional>
#include <new>
#include <thread>

#include "transport/shm/shm_transport.h"

// What only real processes show: death, permissions, limits.
namespace weft::transport::shm {
namespace {

using namespace std::chrono_literals;
using Kind = Completion::Kind;

/// Shared by a test and its children: addresses, and what the children have to say.
struct Board {
  struct Seat {
    std::atomic<std::uint32_t> address_size;
    std::array<std::byte, 512> address;
    std::array<char, 1024> report;
  };
  std::array<Seat, 2> seats;
  std::atomic<int> stage;
};

struct Side {
  std::unique_ptr<Transport> transport;
  Endpoint* link = nullptr;
  std::string error;
};

class ShmProcess : public testing::Test {
 protected:
  void SetUp() override {
    void* memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    board_ = new (memory) Board;
  }
  void TearDown() override { ::munmap(board_, sizeof(Board)); }

  void publish(std::uint32_t rank, const Transport& transport) {
    const auto address = transport.address();
    std::memcpy(board_->seats[rank].address.data(), address.data(), address.size());
    board_->seats[rank].address_size.store(static_cast<std::uint32_t>(address.size()));
  }
  std::vector<std::byte> address_of(std::uint32_t rank) {
    Board::Seat& seat = board_->seats[rank];
    while (seat.address_size.load() == 0) std::this_thread::sleep_for(1ms);
    return {seat.address.begin(), seat.address.begin() + seat.address_size.load()};
  }
  Side join(std::uint32_t rank, PlainCopy plain_copy = PlainCopy::automatic, std::uint32_t num_local_ranks = 2) {
    Side side;
    side.transport =
        *make_shm_transport({.rank = Rank{rank}, .num_local_ranks = num_local_ranks, .plain_copy = plain_copy});
    publish(rank, *side.transport);
    const std::array peers{PeerAddress{Rank{1 - rank}, address_of(1 - rank)}};
    const auto connected = side.transport->connect(peers, Deadline::after(20s));
    if (connected[0].endpoint) {
      side.link = *connected[0].endpoint;
    } else {
      side.error = connected[0].endpoint.error().message();
    }
    return side;
  }
  void report(std::uint32_t rank, const std::string& text) {
    std::snprintf(board_->seats[rank].report.data(), board_->seats[rank].report.size(), "%s", text.c_str());
  }
  std::string report_of(std::uint32_t rank) const { return board_->seats[rank].report.data(); }
  void wait_for_stage(int stage) {
    while (board_->stage.load() < stage) std::this_thread::sleep_for(1ms);
  }

  pid_t spawn(const std::function<void()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
      body();
      std::_Exit(0);
    }
    return child;
  }
  static int wait_for(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
  }

  Board* board_ = nullptr;
};

TEST_F(ShmProcess, AKilledPeerFailsTheLinkAfterItsLastMessage) {
  for (const int way : {0, 1, 2}) {  // The survivor polls; sleeps; sleeps on the fd.
    board_->stage = 0;
    for (auto& seat : board_->seats) seat.address_size = 0;
    const pid_t child = spawn([&] {
      Side side = join(1);
      for (std::uint32_t i = 0; i < 10; ++i) (void)side.link->post_message(std::as_bytes(std::span(&i, 1)), {});
      board_->stage = 1;
      for (;;) ::pause();
    });
    Side side = join(0);
    ASSERT_NE(side.link, nullptr) << side.error;
    wait_for_stage(1);
    std::thread killer([&] {
      std::this_thread::sleep_for(20ms);
      ::kill(child, SIGKILL);
    });
    const Deadline deadline = Deadline::after(10s);
    std::size_t messages = 0;
    bool failed = false;
    std::array<Completion, 3> out;
    while (!failed && !deadline.has_passed()) {
      const std::size_t count = side.transport->poll(out);
      for (std::size_t i = 0; i < count; ++i) {
        if (out[i].kind == Kind::message) ++messages;
        if (out[i].kind == Kind::failed) failed = true;
      }
      if (count > 0 || way == 0 || !side.transport->arm(way == 1 ? Wake::by_sleep : Wake::by_event_fd)) continue;
      if (way == 1) {
        side.transport->sleep(10s);
      } else {
        pollfd fd{.fd = side.transport->event_fd(), .events = POLLIN, .revents = 0};
        ::poll(&fd, 1, 10'000);
      }
      side.transport->disarm();
    }
    killer.join();
    ASSERT_TRUE(failed) << way;
    EXPECT_EQ(messages, 10u);
    ASSERT_TRUE(side.link->failure());
    EXPECT_EQ(side.link->failure()->code(), ErrorCode::peer_failed);
    EXPECT_NE(side.link->failure()->message().find("process " + std::to_string(child) + " died"), std::string::npos);
    EXPECT_EQ(side.link->post_message({}, {}).error().code(), ErrorCode::peer_failed);
    EXPECT_EQ(side.transport->poll(out), 0u);
    EXPECT_TRUE(side.transport->arm(Wake::by_event_fd)) << "a dead peer is news only once";
    pollfd fd{.fd = side.transport->event_fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&fd, 1, 0), 0);
    side.transport->disarm();
    wait_for(child);
  }
}

TEST_F(ShmProcess, WhatAPeerSaidIsPolledThoughItsMemoryIsReadAfterItsDeath) {
  for (const std::uint32_t num_local_ranks : {2u, 256u}) {
    for (auto& seat : board_->seats) seat.address_size = 0;
    board_->stage = 0;
    const pid_t child = spawn([&] {
      Side side = join(1, PlainCopy::automatic, num_local_ranks);
      static std::array<std::byte, 4096> memory;
      const auto registration = side.transport->register_memory(memory.data(), memory.size(), device::MemoryKind::host);
      (void)side.link->post_message(std::as_bytes(std::span(&registration->key, 1)), {});
      for (std::uint32_t i = 0; i < 9; ++i) (void)side.link->post_message(std::as_bytes(std::span(&i, 1)), {});
      wait_for_stage(1);
      ::raise(SIGKILL);
    });
    Side side = join(0, PlainCopy::automatic, num_local_ranks);
    ASSERT_NE(side.link, nullptr) << side.error;
    if (side.link->capabilities().plain_path != PlainPath::read) GTEST_SKIP() << "reads are not permitted here";
    std::array<Completion, 1> out;
    while (side.transport->poll(out) == 0) std::this_thread::yield();
    RegionKey key;
    ASSERT_EQ(out[0].message.size(), sizeof key);
    std::memcpy(&key, out[0].message.data(), sizeof key);
    board_->stage = 1;
    wait_for(child);  // It is gone altogether.
    std::array<std::byte, 4096> copy{};
    const auto own = side.transport->register_memory(copy.data(), copy.size(), device::MemoryKind::host);
    const auto attempt = [&] { return side.link->post_read({&*own, 0, 4096}, {key, 0, 4096}, Token{1}); };
    const auto posted = attempt();
    ASSERT_TRUE(posted) << posted.error().message();
    EXPECT_EQ(*posted, Posted::again);
    std::vector<Kind> kinds;
    for (const Deadline deadline = Deadline::after(10s); !deadline.has_passed();) {
      for (std::size_t count = side.transport->poll(out); count > 0; --count) kinds.push_back(out[0].kind);
      if (!kinds.empty() && kinds.back() == Kind::failed) break;
    }
    std::vector<Kind> expected(9, Kind::message);
    expected.push_back(Kind::failed);
    EXPECT_EQ(kinds, expected);
    ASSERT_FALSE(attempt());
    EXPECT_NE(attempt().error().message().find("died"), std::string::npos) << attempt().error().message();
  }
}

TEST_F(ShmProcess, AnOrderlyEndIsNoFailureThoughTheProcessExits) {
  const pid_t child = spawn([&] {
    Side side = join(1);
    (void)side.link->post_message({}, {});
    side.link->close();
  });
  Side side = join(0);
  ASSERT_NE(side.link, nullptr) << side.error;
  wait_for(child);
  std::this_thread::sleep_for(5ms);
  std::vector<Kind> kinds;
  std::array<Completion, 4> out;
  const Deadline deadline = Deadline::after(50ms);
  while (!deadline.has_passed()) {
    const std::size_t count = side.transport->poll(out);
    for (std::size_t i = 0; i < count; ++i) kinds.push_back(out[i].kind);
  }
  EXPECT_EQ(kinds, (std::vector{Kind::message, Kind::closed}));
  EXPECT_FALSE(side.link->failure());
}

TEST_F(ShmProcess, APeerThatDiesWhileConnectingIsNoReasonToWait) {
  const pid_t child = spawn([&] {
    auto transport = *make_shm_transport({.rank = Rank{1}});
    publish(1, *transport);
    (void)address_of(0);
    std::this_thread::sleep_for(20ms);
    ::raise(SIGKILL);
  });
  const Deadline deadline = Deadline::after(10s);
  const Side side = join(0);
  EXPECT_FALSE(deadline.has_passed());
  EXPECT_NE(side.error.find("process " + std::to_string(child)), std::string::npos) << side.error;
  wait_for(child);
}

/// An ordinary user's process: as root nothing would be refused.
void become_ordinary(bool is_dumpable) {
  if (::getuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) std::_Exit(9);
  ::prctl(PR_SET_DUMPABLE, is_dumpable ? 1 : 0, 0, 0, 0);
}

TEST_F(ShmProcess, APeerThatMayNotBeOpenedIsRefusedOnBothSidesWithTheReason) {
  const pid_t open = spawn([&] {
    become_ordinary(true);
    const Side side = join(0);
    report(0, side.error);
    wait_for_stage(1);  // Alive until the other one has been refused.
  });
  const pid_t hidden = spawn([&] {
    become_ordinary(false);
    report(1, join(1).error);
    board_->stage = 1;
  });
  const Deadline deadline = Deadline::after(15s);
  EXPECT_EQ(wait_for(open), 0);
  EXPECT_EQ(wait_for(hidden), 0);
  EXPECT_FALSE(deadline.has_passed()) << "a refusal waits for nobody";
  EXPECT_NE(report_of(0).find("open /proc/" + std::to_string(hidden) + "/fd/"), std::string::npos) << report_of(0);
  EXPECT_NE(report_of(0).find("Permission denied"), std::string::npos) << report_of(0);
  EXPECT_NE(report_of(1).find("refused"), std::string::npos) << report_of(1);
  EXPECT_NE(report_of(1).find("open /proc/"), std::string::npos) << report_of(1);
}

/// What a container's seccomp profile does to process_vm_readv.
void forbid_process_vm_readv() {
  std::array program{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{.len = program.size(), .filter = program.data()};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) std::_Exit(9);
}

TEST_F(ShmProcess, WhereReadsAreForbiddenBothSidesStageAndTheRestWorks) {
  const pid_t child = spawn([&] {
    forbid_process_vm_readv();
    Side side = join(1, PlainCopy::readv);
    if (side.link == nullptr) {
      report(1, side.error);
      return;
    }
    report(1, side.link->describe());
    (void)side.link->post_message({}, {});
    wait_for_stage(1);
  });
  Side side = join(0, PlainCopy::readv);
  ASSERT_NE(side.link, nullptr) << side.error;
  EXPECT_EQ(side.link->capabilities().plain_path, PlainPath::staging);
  std::array<Completion, 1> out;
  const Deadline deadline = Deadline::after(10s);
  while (side.transport->poll(out) == 0 && !deadline.has_passed()) std::this_thread::yield();
  EXPECT_EQ(out[0].kind, Kind::message);
  board_->stage = 1;
  EXPECT_EQ(wait_for(child), 0);
  EXPECT_NE(report_of(1).find("plain memory by messages"), std::string::npos) << report_of(1);
}

TEST_F(ShmProcess, TooLittleMemoryForTheRingsIsAnErrorForThatPeerOnly) {
  const pid_t child = spawn([&] {
    auto transport = *make_shm_transport({.rank = Rank{1}});
    const rlimit limit{256 << 10, 256 << 10};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    publish(1, *transport);
    const auto connected = transport->connect(std::array{PeerAddress{Rank{0}, address_of(0)}}, Deadline::after(10s));
    report(1, connected[0].endpoint ? "connected" : connected[0].endpoint.error().message());
    wait_for_stage(1);
  });
  const Side side = join(0);
  board_->stage = 1;
  EXPECT_EQ(wait_for(child), 0);
  EXPECT_NE(report_of(1).find("RLIMIT_FSIZE"), std::string::npos) << report_of(1);
  EXPECT_NE(side.error.find("refused"), std::string::npos) << side.error;
  EXPECT_NE(side.error.find("needed"), std::string::npos) << side.error;
}

TEST_F(ShmProcess, NoWakeUpIsLostBetweenProcesses) {
  constexpr std::uint32_t kRounds = 3000;
  const auto run = [&](Side& side, std::uint32_t rank) {
    std::uint32_t late = 0;
    std::array<Completion, 2> out;
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      const Wake wake = round % 2 == 0 ? Wake::by_sleep : Wake::by_event_fd;
      if (round % 2 == rank) {
        (void)side.link->post_message(std::as_bytes(std::span(&round, 1)), {});
        continue;
      }
      while (side.transport->poll(out) == 0) {
        if (!side.transport->arm(wake)) continue;
        const Deadline deadline = Deadline::after(5s);
        if (wake == Wake::by_sleep) {
          side.transport->sleep(5s);
        } else {
          pollfd fd{.fd = side.transport->event_fd(), .events = POLLIN, .revents = 0};
          ::poll(&fd, 1, 5000);
        }
        late += deadline.has_passed() ? 1 : 0;
        side.transport->disarm();
      }
      if (out[0].kind != Kind::message || std::memcmp(out[0].message.data(), &round, sizeof round) != 0) return 1000u;
    }
    return late;
  };
  const pid_t child = spawn([&] {
    Side side = join(1);
    report(1, std::to_string(run(side, 1)));
    wait_for_stage(1);
  });
  Side side = join(0);
  ASSERT_NE(side.link, nullptr) << side.error;
  EXPECT_EQ(run(side, 0), 0u);
  board_->stage = 1;
  EXPECT_EQ(wait_for(child), 0);
  EXPECT_EQ(report_of(1), "0");
}

}  // namespace
}  // namespace weft::transport::shm
