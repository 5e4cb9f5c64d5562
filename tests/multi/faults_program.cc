// A rank of a job in which something goes wrong. Started by faults_test.py, which judges what is printed:
// one line "RESULT <status> <last error>" for the call that was to fail or to work.
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "tests/multi/check.h"

namespace weft::multi {
namespace {

weft_communicator_t* create() {
  weft_communicator_t* world = nullptr;
  succeed(weft_create(&world), "weft_create");
  return world;
}

void print_result(weft_status_t status) {
  std::printf("RESULT %s %s\n", weft_status_name(status), status == WEFT_SUCCESS ? "" : weft_last_error());
  std::fflush(stdout);
}

int num_open_fds() {
  int count = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

/// All-reduces until one fails; then destroys in order.
int reduce_for_ever(std::size_t count) {
  weft_communicator_t* world = create();
  std::vector<float> send(count, 1.0F), receive(count);
  std::printf("READY\n");
  std::fflush(stdout);
  weft_status_t status = WEFT_SUCCESS;
  while (status == WEFT_SUCCESS)
    status = weft_all_reduce(world, send.data(), receive.data(), count, WEFT_F32, WEFT_SUM);
  print_result(status);
  print_result(weft_barrier(world));  // What comes later has the first cause.
  (void)weft_destroy(world);
  return 0;
}

/// Rank 0 sends and is gone at once, without a goodbye or with one; the others receive after a nap.
int send_then_exit(bool destroys, std::size_t size_bytes) {
  weft_communicator_t* world = create();
  std::vector<char> bytes(size_bytes, 'x');
  if (weft_rank(world) == 0) {
    weft_request_t request;
    for (std::uint32_t peer = 1; peer < weft_size(world); ++peer) {
      succeed(weft_start_send(world, bytes.data(), bytes.size(), WEFT_U8, peer, &request), "send");
      if (!destroys) succeed(weft_wait(&request, 0), "wait");
    }
    if (destroys) succeed(weft_destroy(world), "destroy");
    std::_Exit(0);
  }
  usleep(200'000);
  std::vector<char> got(size_bytes, '-');
  const weft_status_t status = weft_receive(world, got.data(), got.size(), WEFT_U8, 0);
  print_result(status);
  if (status == WEFT_SUCCESS) require(got == bytes, "what was received");
  (void)weft_destroy(world);
  return 0;
}

/// A child of a rank cannot use the parent's communicator, and does not harm it by ending.
int fork_after_create() {
  weft_communicator_t* world = create();
  float value = 1.0F;
  succeed(weft_all_reduce(world, &value, &value, 1, WEFT_F32, WEFT_SUM), "before the fork");
  const pid_t child = fork();
  if (child == 0) {
    if (weft_barrier(world) != WEFT_ERROR_CLOSED) std::_Exit(1);
    if (weft_destroy(world) != WEFT_SUCCESS) std::_Exit(2);
    std::exit(0);  // With destructors and handlers of the process.
  }
  int state = 0;
  waitpid(child, &state, 0);
  require(WIFEXITED(state) && WEXITSTATUS(state) == 0, "the child ended with " + std::to_string(state));
  value = 1.0F;
  print_result(weft_all_reduce(world, &value, &value, 1, WEFT_F32, WEFT_SUM));
  require(value == static_cast<float>(weft_size(world)), "the sum after the fork");
  succeed(weft_destroy(world), "destroy");
  return 0;
}

/// Communicators come and go; descriptors do not pile up.
int churn(int rounds) {
  weft_communicator_t* world = create();
  int before = 0;
  for (int round = 0; round < rounds; ++round) {
    weft_communicator_t* twin = nullptr;
    succeed(weft_duplicate(world, &twin), "duplicate");
    int value = 1;
    succeed(weft_all_reduce(twin, &value, &value, 1, WEFT_I32, WEFT_SUM), "all_reduce");
    require(value == static_cast<int>(weft_size(world)), "the sum");
    succeed(weft_destroy(twin), "destroy");
    if (round == 2) before = num_open_fds();
  }
  const int after = num_open_fds();
  require(after <= before + 4, "descriptors: " + std::to_string(before) + " then, " + std::to_string(after) + " now");
  print_result(WEFT_SUCCESS);
  succeed(weft_destroy(world), "destroy");
  return 0;
}

/// What still names a communicator that was destroyed is told so, also when its place is taken by another one.
int use_late() {
  weft_communicator_t* world = create();
  for (const bool has_successor : {false, true}) {
    weft_communicator_t* twin = nullptr;
    succeed(weft_duplicate(world, &twin), "duplicate");
    float send = 1.0F, receive = 0.0F;
    weft_request_t request;
    weft_window_t* window = nullptr;
    succeed(weft_window_create(twin, &send, sizeof send, &window), "window_create");
    succeed(weft_group_begin(), "group_begin");
    succeed(weft_start_all_reduce(twin, &send, &receive, 1, WEFT_F32, WEFT_SUM, &request), "start");
    succeed(weft_barrier(twin), "barrier in a group");
    weft_request_t copy = request;
    succeed(weft_destroy(twin), "destroy");
    require(receive == static_cast<float>(weft_size(world)), "destroy finishes what was started");
    weft_communicator_t* successor = nullptr;
    if (has_successor) succeed(weft_duplicate(world, &successor), "duplicate after");
    int done = 0;
    require(weft_group_end() == WEFT_ERROR_CLOSED, "group_end after destroy");
    require(weft_wait(&request, 0) == WEFT_ERROR_CLOSED, "wait after destroy");
    require(weft_test(&copy, &done) == WEFT_ERROR_CLOSED && done == 1, "test after destroy");
    require(weft_wait_signal(window, 0, 1, 1) == WEFT_ERROR_CLOSED, "wait_signal after destroy");
    require(weft_window_destroy(window) == WEFT_ERROR_CLOSED, "window_destroy after destroy");
    if (!has_successor) require(weft_barrier(twin) == WEFT_ERROR_CLOSED, "barrier after destroy");
    if (!has_successor) require(weft_destroy(twin) == WEFT_ERROR_CLOSED, "destroy after destroy");
    succeed(weft_destroy(successor), "destroy the successor");
  }
  print_result(WEFT_SUCCESS);
  succeed(weft_destroy(world), "destroy");
  return 0;
}

/// Rank 0 calls something else, or ends a job in which others still wait.
int disagree(const std::string& how) {
  weft_communicator_t* world = create();
  std::vector<float> send(1000, 1.0F), receive(1000, -1.0F);
  const bool is_odd_one = weft_rank(world) == 0;
  if (how == "count") {
    const std::size_t count = is_odd_one ? 999 : 1000;
    print_result(weft_all_reduce(world, send.data(), receive.data(), count, WEFT_F32, WEFT_SUM));
  } else if (how == "fewer") {
    if (!is_odd_one) print_result(weft_barrier(world));
  } else if (how == "abort") {
    if (is_odd_one) {
      usleep(100'000);
      succeed(weft_abort(world, "the test says so"), "abort");
      usleep(300'000);
    } else {
      print_result(weft_barrier(world));
    }
  }
  (void)weft_destroy(world);
  return 0;
}

/// A thread waits on one communicator while another one takes over, uses and destroys those that the first used before.
int hand_over(int rounds) {
  weft_communicator_t* world = create();
  for (int round = 0; round < rounds; ++round) {
    weft_communicator_t* given[2] = {};
    float values[2] = {1.0F, 1.0F};
    weft_request_t requests[2];
    for (int i = 0; i < 2; ++i) {
      succeed(weft_duplicate(world, &given[i]), "duplicate");
      succeed(weft_start_all_reduce(given[i], &values[i], &values[i], 1, WEFT_F32, WEFT_SUM, &requests[i]), "start");
    }
    std::thread other([&] {
      for (int i = 0; i < 2; ++i) {
        succeed(weft_wait(&requests[i], 0), "wait in another thread");
        for (int k = 0; k < 20; ++k) {
          values[i] = 1.0F;
          succeed(weft_all_reduce(given[i], &values[i], &values[i], 1, WEFT_F32, WEFT_SUM), "call in another thread");
        }
        require(values[i] == static_cast<float>(weft_size(world)), "the sum in another thread");
        succeed(weft_destroy(given[i]), "destroy in another thread");
      }
    });
    for (int k = 0; k < 50; ++k) succeed(weft_barrier(world), "barrier meanwhile");
    other.join();
    succeed(weft_barrier(world), "barrier after");
  }
  print_result(WEFT_SUCCESS);
  succeed(weft_destroy(world), "destroy");
  return 0;
}

/// Rank 0, in whose process the ranks meet, is gone as soon as it has its communicator; the others get theirs.
int create_then_exit() {
  weft_communicator_t* world = nullptr;
  const weft_status_t status = weft_create(&world);
  if (status == WEFT_SUCCESS && weft_rank(world) == 0) std::_Exit(0);
  print_result(status);
  std::_Exit(0);
}

/// Rank 0 fails while rank 1 has not yet read what it sends, and uses the memory again as soon as it has it back.
int use_again(bool is_allocated) {
  constexpr std::size_t kSize = std::size_t{8} << 20;
  weft_communicator_t* world = create();
  std::vector<char> plain(kSize);
  void* memory = plain.data();
  if (is_allocated) succeed(weft_memory_allocate(kSize, &memory), "allocate");
  std::memset(memory, 'x', kSize);
  succeed(weft_barrier(world), "barrier");
  if (weft_rank(world) == 0) {
    weft_request_t request;
    succeed(weft_start_send(world, memory, kSize, WEFT_U8, 1, &request), "send");
    succeed(weft_abort(world, "the test says so"), "abort");
    require(weft_wait(&request, 0) == WEFT_ERROR_CLOSED, "the send ended with the abort");
    std::memset(memory, 'y', kSize);
    usleep(500'000);
  } else {
    usleep(200'000);  // The other one is done with all that by now.
    std::vector<char> got(kSize, '-');
    const weft_status_t status = weft_receive(world, got.data(), kSize, WEFT_U8, 0);
    print_result(status);
    require(status != WEFT_SUCCESS || got == std::vector<char>(kSize, 'x'), "what was received");
  }
  (void)weft_destroy(world);
  if (is_allocated) succeed(weft_memory_free(memory), "free");
  return 0;
}

/// Another thread aborts while this one waits, sleeps or is between calls: it hears `closed`, never anything else.
int abort_from_a_thread() {
  weft_communicator_t* world = create();
  const std::uint32_t rank = weft_rank(world);
  std::thread other([&] {
    usleep(50'000);
    if (rank == 0) succeed(weft_abort(world, "enough"), "abort");
  });
  weft_status_t status = WEFT_SUCCESS;
  float value = 1.0F;
  while (status == WEFT_SUCCESS) status = weft_all_reduce(world, &value, &value, 1, WEFT_F32, WEFT_MAX);
  print_result(status);
  other.join();
  (void)weft_destroy(world);
  return 0;
}

/// Ends without destroying anything, once all are done (before, it would count as dead).
int exit_without_destroy() {
  weft_communicator_t* world = create();
  float value = 1.0F;
  print_result(weft_all_reduce(world, &value, &value, 1, WEFT_F32, WEFT_SUM));
  usleep(300'000);
  return 0;
}

}  // namespace
}  // namespace weft::multi

int main(int argc, char** argv) {
  using namespace weft::multi;  // NOLINT(google-build-using-namespace)
  const std::string what = argc > 1 ? argv[1] : "";
  const std::string how = argc > 2 ? argv[2] : "";
  if (what == "reduce") return reduce_for_ever(std::stoul(how));
  if (what == "send_then_exit") return send_then_exit(false, std::stoul(how));
  if (what == "send_then_destroy") return send_then_exit(true, std::stoul(how));
  if (what == "fork") return fork_after_create();
  if (what == "churn") return churn(std::stoi(how));
  if (what == "use_late") return use_late();
  if (what == "disagree") return disagree(how);
  if (what == "hand_over") return hand_over(std::stoi(how));
  if (what == "abort") return abort_from_a_thread();
  if (what == "create_then_exit") return create_then_exit();
  if (what == "use_again") return use_again(how == "allocated");
  if (what == "exit") return exit_without_destroy();
  fail("unknown part " + what);
}
