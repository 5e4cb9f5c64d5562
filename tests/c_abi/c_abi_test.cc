// What weft.h promises about the calls themselves, on a communicator of one rank.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <weft/weft.hpp>

namespace weft {
namespace {

class OneRank : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(weft_create(&communicator_), WEFT_SUCCESS) << weft_last_error(); }
  void TearDown() override { EXPECT_EQ(weft_destroy(communicator_), WEFT_SUCCESS) << weft_last_error(); }

  /// Runs `body` while another thread waits inside the communicator, which it leaves as late as the abort.
  template <class Body>
  void while_another_thread_is_inside(Body body) {
    int value = 0;
    weft_request_t inside;
    ASSERT_EQ(weft_start_receive(communicator_, &value, 1, WEFT_I32, 0, &inside), WEFT_SUCCESS);
    std::thread other([&] {
      weft_status_t status = WEFT_ERROR_INVALID_ARGUMENT;  // While the barrier below is inside.
      while (status == WEFT_ERROR_INVALID_ARGUMENT) status = weft_wait(&inside, UINT64_MAX);
      EXPECT_EQ(status, WEFT_ERROR_CLOSED);
    });
    // A call that is refused says that the other thread is inside.
    while (weft_barrier(communicator_) != WEFT_ERROR_INVALID_ARGUMENT) std::this_thread::yield();
    body();
    EXPECT_EQ(weft_abort(communicator_, "the test is over"), WEFT_SUCCESS);
    other.join();
  }

  weft_communicator_t* communicator_ = nullptr;
};

TEST_F(OneRank, KeepsErrno) {
  errno = ERANGE;
  weft_communicator_t* second = nullptr;
  EXPECT_EQ(weft_create(&second), WEFT_SUCCESS);
  EXPECT_EQ(weft_barrier(second), WEFT_SUCCESS);
  void* memory = nullptr;
  EXPECT_EQ(weft_memory_allocate(1 << 16, &memory), WEFT_SUCCESS);
  EXPECT_EQ(weft_memory_free(memory), WEFT_SUCCESS);
  EXPECT_EQ(weft_destroy(second), WEFT_SUCCESS);
  EXPECT_EQ(errno, ERANGE);
}

TEST_F(OneRank, MemoryIsFreedOnceByItsAddress) {
  void* memory = nullptr;
  ASSERT_EQ(weft_memory_allocate(100, &memory), WEFT_SUCCESS);
  EXPECT_EQ(weft_memory_free(&memory), WEFT_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(weft_memory_free(memory), WEFT_SUCCESS);
  EXPECT_EQ(weft_memory_free(memory), WEFT_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(weft_memory_free(nullptr), WEFT_SUCCESS);
}

TEST_F(OneRank, ARequestThatASecondThreadAsksForStaysInFlight) {
  int value = 0;
  weft_request_t request;
  ASSERT_EQ(weft_start_receive(communicator_, &value, 1, WEFT_I32, 0, &request), WEFT_SUCCESS);
  while_another_thread_is_inside([&] {
    int done = 1;
    EXPECT_EQ(weft_test(&request, &done), WEFT_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(done, 0);
    EXPECT_EQ(weft_wait(&request, 1), WEFT_ERROR_INVALID_ARGUMENT);
  });
  // It is a request still: it ends with the communicator's first cause.
  EXPECT_EQ(weft_wait(&request, 1), WEFT_ERROR_CLOSED);
  EXPECT_EQ(weft_wait(&request, 1), WEFT_ERROR_INVALID_ARGUMENT);
}

TEST_F(OneRank, IsNotDestroyedUnderAnotherThread) {
  while_another_thread_is_inside([&] { EXPECT_EQ(weft_destroy(communicator_), WEFT_ERROR_INVALID_ARGUMENT); });
  EXPECT_EQ(weft_size(communicator_), 1U);
}

TEST_F(OneRank, ATimeoutLeavesTheRequestInFlight) {
  int sent = 7;
  int received = 0;
  weft_request_t receive;
  ASSERT_EQ(weft_start_receive(communicator_, &received, 1, WEFT_I32, 0, &receive), WEFT_SUCCESS);
  EXPECT_EQ(weft_wait(&receive, 1), WEFT_ERROR_TIMEOUT);
  EXPECT_EQ(weft_send(communicator_, &sent, 1, WEFT_I32, 0), WEFT_SUCCESS);
  EXPECT_EQ(weft_wait(&receive, 0), WEFT_SUCCESS);
  EXPECT_EQ(received, 7);
}

TEST_F(OneRank, WhatIsNoRequestIsAnError) {
  int value = 1;
  int result = 0;
  int done = 0;
  const auto expect_refused = [&](weft_request_t request, const char* what) {
    weft_request_t other = request;
    EXPECT_EQ(weft_wait(&request, 1), WEFT_ERROR_INVALID_ARGUMENT) << what;
    EXPECT_EQ(weft_test(&other, &done), WEFT_ERROR_INVALID_ARGUMENT) << what;
  };
  expect_refused(weft_request_t{}, "zeros");
  weft_request_t garbage;
  std::memset(&garbage, 0xa5, sizeof garbage);
  expect_refused(garbage, "never filled in");
  expect_refused({{1, 2, 3}}, "small numbers");
  expect_refused({{reinterpret_cast<std::uintptr_t>(&value), 0, 0}}, "a pointer to something else");

  weft_request_t request;
  ASSERT_EQ(weft_start_all_reduce(communicator_, &value, &result, 1, WEFT_I32, WEFT_SUM, &request), WEFT_SUCCESS);
  for (std::size_t word = 0; word < 3; ++word) {
    weft_request_t changed = request;
    changed.opaque[word] ^= 1;
    expect_refused(changed, "one bit changed");
  }
  weft_request_t copy = request;
  EXPECT_EQ(weft_wait(&request, 0), WEFT_SUCCESS) << weft_last_error();
  expect_refused(request, "completed");
  expect_refused(copy, "a copy of one that is completed");
  EXPECT_EQ(weft_wait(nullptr, 0), WEFT_ERROR_INVALID_ARGUMENT);
}

TEST(Fork, AChildDestroysWhatAnotherThreadWasInsideOf) {
  weft_communicator_t* waiting = nullptr;
  weft_communicator_t* idle = nullptr;
  ASSERT_EQ(weft_create(&waiting), WEFT_SUCCESS);
  ASSERT_EQ(weft_create(&idle), WEFT_SUCCESS);
  std::atomic<bool> is_started = false;
  std::thread inside([&] {
    // Two communicators of one thread: it holds the lock of their list while it sleeps.
    EXPECT_EQ(weft_barrier(idle), WEFT_SUCCESS);
    int value = 0;
    weft_request_t request;
    ASSERT_EQ(weft_start_receive(waiting, &value, 1, WEFT_I32, 0, &request), WEFT_SUCCESS);
    is_started = true;
    weft_status_t status = WEFT_ERROR_INVALID_ARGUMENT;  // While the barrier below is inside.
    while (status == WEFT_ERROR_INVALID_ARGUMENT) status = weft_wait(&request, UINT64_MAX);
    EXPECT_EQ(status, WEFT_ERROR_CLOSED);
  });
  while (!is_started) std::this_thread::yield();
  while (weft_barrier(waiting) != WEFT_ERROR_INVALID_ARGUMENT) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // Until it sleeps.
  for (int round = 0; round < 20; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(5);  // Ends the child if it waits for a lock that nobody will release.
      if (weft_barrier(waiting) != WEFT_ERROR_CLOSED || weft_abort(waiting, "no") != WEFT_SUCCESS) std::_Exit(1);
      if (weft_destroy(waiting) != WEFT_SUCCESS || weft_destroy(idle) != WEFT_SUCCESS) std::_Exit(2);
      weft_communicator_t* own = nullptr;
      if (weft_create(&own) != WEFT_SUCCESS || weft_barrier(own) != WEFT_SUCCESS) std::_Exit(3);
      std::_Exit(weft_destroy(own) == WEFT_SUCCESS ? 0 : 4);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    ASSERT_EQ(WEXITSTATUS(status), 0);
  }
  EXPECT_EQ(weft_abort(waiting, "the test is over"), WEFT_SUCCESS);
  inside.join();
  EXPECT_EQ(weft_destroy(waiting), WEFT_SUCCESS);
  EXPECT_EQ(weft_destroy(idle), WEFT_SUCCESS);
}

TEST(CommunicatorInCpp, RefusesSpansThatWouldBeOverrun) {
  auto world = Communicator::create();
  ASSERT_TRUE(world) << world.failure().text;
  std::array<float, 4> four{1, 2, 3, 4};
  std::array<float, 2> two{};
  const auto refuses = [](const Outcome<void>& outcome) {
    return !outcome && outcome.failure().status == WEFT_ERROR_INVALID_ARGUMENT;
  };
  EXPECT_TRUE(refuses(world->all_reduce<float>(four, two)));
  EXPECT_TRUE(refuses(world->reduce<float>(four, two, 0)));
  EXPECT_TRUE(refuses(world->all_gather<float>(four, two)));
  EXPECT_TRUE(refuses(world->reduce_scatter<float>(two, four)));
  EXPECT_TRUE(refuses(world->gather<float>(four, two, 0)));
  EXPECT_TRUE(refuses(world->scatter<float>(two, four, 0)));
  EXPECT_TRUE(refuses(world->all_to_all<float>(four, two)));
  EXPECT_FALSE(world->start_all_reduce<float>(four, two));
  std::array<float, 4> result{};
  EXPECT_TRUE(world->all_reduce<float>(four, result));
  EXPECT_EQ(result, four);
}

TEST(MemoryInCpp, RefusesMoreElementsThanAddresses) {
  EXPECT_FALSE(Memory<double>::allocate(static_cast<std::size_t>(-1) / 4));
}

}  // namespace
}  // namespace weft
