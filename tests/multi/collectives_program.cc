// A rank of a job that uses everything in weft.h and checks every result. Started by multi_test.py.
#include <algorithm>
#include <cstring>
#include <memory>

#include "tests/multi/call.h"
#include "tests/multi/check.h"

namespace weft::multi {
namespace {

weft_communicator_t* create() {
  weft_communicator_t* world = nullptr;
  succeed(weft_create(&world), "weft_create");
  return world;
}

void run(weft_communicator_t* world, const Call::Shape& shape) {
  Call call{world, shape};
  succeed(call.run(), call.describe());
  call.check();
}

/// Every collective in every type, placement and kind of memory; ops and roots take turns.
void sweep(weft_communicator_t* world) {
  const std::uint32_t size = weft_size(world);
  std::uint32_t turn = 0;
  for (std::uint32_t kind = 0; kind < kKinds; ++kind) {
    for (std::uint32_t type = WEFT_I8; type <= WEFT_F64; ++type) {
      for (const std::size_t count : {0, 1, 7, 1021}) {
        for (const bool in_place : {false, true}) {
          for (const bool is_allocated : {false, true}) {
            ++turn;
            run(world, {static_cast<Kind>(kind), static_cast<weft_type_t>(type), static_cast<weft_op_t>(turn % 5),
                        count, turn % size, in_place, is_allocated});
          }
        }
      }
    }
    // Several slices, and an odd tail.
    for (const bool in_place : {false, true}) {
      // Every rank uses the memory that it likes.
      const bool is_allocated = (weft_rank(world) + (in_place ? 1 : 0)) % 2 == 0;
      run(world, {static_cast<Kind>(kind), WEFT_F32, WEFT_SUM, 200'003, kind % size, in_place, is_allocated});
      run(world, {static_cast<Kind>(kind), WEFT_BF16, WEFT_MAX, 300'001, kind % size, in_place, is_allocated});
    }
    succeed(weft_barrier(world), "weft_barrier");
  }
}

/// Communicators of their own: split, duplicate, in flight together and waited for in opposite orders.
void communicators(weft_communicator_t* world) {
  const std::uint32_t rank = weft_rank(world);
  const std::uint32_t size = weft_size(world);
  weft_communicator_t* half = nullptr;
  weft_communicator_t* reversed = nullptr;
  weft_communicator_t* twin = nullptr;
  weft_communicator_t* none = nullptr;
  succeed(weft_split(world, static_cast<std::int32_t>(rank % 2), 0, &half), "split");
  succeed(weft_split(world, 0, -static_cast<std::int32_t>(rank), &reversed), "split by key");
  succeed(weft_split(world, rank == 0 ? -1 : 0, 0, &none), "split without rank 0");
  succeed(weft_duplicate(world, &twin), "duplicate");
  require(weft_size(half) == (size + 1 - rank % 2) / 2 && weft_rank(half) == rank / 2, "ranks of the half");
  require(weft_rank(reversed) == size - 1 - rank, "ranks in reverse");
  require((none == nullptr) == (rank == 0), "a negative color has no part");
  weft_communicator_t* all[] = {world, twin, reversed, half};
  for (int round = 0; round < 10; ++round) {
    const std::size_t count = round % 2 == 0 ? 3 : 100'003;
    std::vector<std::unique_ptr<Call>> calls;
    std::vector<weft_request_t> requests(std::size(all));
    for (std::size_t i = 0; i < std::size(all); ++i) {
      calls.push_back(std::make_unique<Call>(
          all[i],
          Call::Shape{.kind = Kind::all_reduce, .type = WEFT_I32, .count = count, .is_allocated = round % 4 < 2}));
      succeed(calls[i]->start(&requests[i]), calls[i]->describe());
    }
    for (std::size_t i = 0; i < std::size(all); ++i) {
      const std::size_t which = rank % 2 == 0 ? i : std::size(all) - 1 - i;
      succeed(weft_wait(&requests[which], 0), calls[which]->describe());
      calls[which]->check();
    }
  }
  // Blocking calls on two communicators in opposite order, in a group.
  Call one{world, {.kind = Kind::all_gather, .type = WEFT_I64, .count = 5000}};
  Call two{twin, {.kind = Kind::all_to_all, .type = WEFT_U8, .count = 70'001}};
  succeed(weft_group_begin(), "group");
  succeed(rank % 2 == 0 ? one.run() : two.run(), "first of the group");
  succeed(rank % 2 == 0 ? two.run() : one.run(), "second of the group");
  succeed(weft_group_end(), "end of the group");
  one.check();
  two.check();
  for (weft_communicator_t* communicator : {half, reversed, twin, none}) succeed(weft_destroy(communicator), "destroy");
}

/// Everybody sends to everybody, itself included, several messages of different sizes at once.
void sends(weft_communicator_t* world) {
  const std::uint32_t rank = weft_rank(world);
  const std::uint32_t size = weft_size(world);
  constexpr std::size_t kSizes[] = {0, 1, 64, 5000, 700'001};
  std::vector<std::vector<std::uint8_t>> sources, destinations;
  std::vector<weft_request_t> requests;
  for (std::uint32_t peer = 0; peer < size; ++peer) {
    for (std::size_t i = 0; i < std::size(kSizes); ++i) {
      sources.emplace_back(kSizes[i], static_cast<std::uint8_t>(rank * 50 + peer * 7 + i));
      destinations.emplace_back(kSizes[i], std::uint8_t{0xff});
    }
  }
  const auto start = [&](bool is_send) {
    for (std::uint32_t peer = 0; peer < size; ++peer) {
      for (std::size_t i = 0; i < std::size(kSizes); ++i) {
        const std::size_t at = peer * std::size(kSizes) + i;
        weft_request_t request;
        succeed(is_send ? weft_start_send(world, sources[at].data(), kSizes[i], WEFT_U8, peer, &request)
                        : weft_start_receive(world, destinations[at].data(), kSizes[i], WEFT_U8, peer, &request),
                "start of a send or receive");
        requests.push_back(request);
      }
    }
  };
  start(rank % 2 == 0);
  start(rank % 2 != 0);
  std::reverse(requests.begin(), requests.end());
  for (weft_request_t& request : requests) succeed(weft_wait(&request, 0), "wait for a send or receive");
  for (std::uint32_t peer = 0; peer < size; ++peer) {
    for (std::size_t i = 0; i < std::size(kSizes); ++i) {
      const std::vector<std::uint8_t> wanted(kSizes[i], static_cast<std::uint8_t>(peer * 50 + rank * 7 + i));
      require(destinations[peer * std::size(kSizes) + i] == wanted, "what was received");
    }
  }
}

/// Puts into every rank's window, itself included, with and without signals, and windows without bytes.
void windows(weft_communicator_t* world) {
  const std::uint32_t rank = weft_rank(world);
  const std::uint32_t size = weft_size(world);
  constexpr std::size_t kArea = 300'000;
  for (const bool is_allocated : {false, true}) {
    std::vector<std::uint8_t> plain(is_allocated ? 0 : kArea * size);
    void* memory = plain.data();
    if (is_allocated) succeed(weft_memory_allocate(kArea * size, &memory), "weft_memory_allocate");
    weft_window_t* window = nullptr;
    weft_window_t* empty = nullptr;
    succeed(weft_window_create(world, memory, kArea * size, &window), "window");
    succeed(weft_window_create(world, nullptr, 0, &empty), "window without bytes");
    const std::vector<std::uint8_t> source(kArea, static_cast<std::uint8_t>(rank + 1));
    std::vector<weft_request_t> requests;
    for (std::uint32_t peer = 0; peer < size; ++peer) {
      // The first half has a signal, the second half and a small piece in the middle of nowhere do not.
      weft_request_t request;
      succeed(weft_put(window, source.data(), kArea / 2, peer, rank * kArea, 1, &request), "put");
      requests.push_back(request);
      succeed(weft_put(window, source.data(), kArea / 2 - 100, peer, rank * kArea + kArea / 2, 0, &request),
              "silent put");
      requests.push_back(request);
      succeed(weft_put(window, source.data(), 100, peer, rank * kArea + kArea - 100, 0, &request), "small put");
      requests.push_back(request);
      succeed(weft_put(empty, nullptr, 0, peer, 0, 1, &request), "pure signal");
      requests.push_back(request);
      require(weft_put(window, source.data(), kArea, peer, size * kArea - 1, 0, &request) == WEFT_ERROR_OUT_OF_RANGE,
              "a put that leaves the window");
    }
    const auto* bytes = static_cast<const std::uint8_t*>(memory);
    for (std::uint32_t peer = 0; peer < size; ++peer) {
      succeed(weft_wait_signal(window, peer, 1, 0), "signal");
      require(std::all_of(bytes + peer * kArea, bytes + peer * kArea + kArea / 2,
                          [&](int b) { return b == int(peer) + 1; }),
              "bytes that were signalled");
      succeed(weft_wait_signal(empty, peer, 1, 0), "pure signal");
    }
    for (weft_request_t& request : requests) succeed(weft_wait(&request, 0), "wait for a put");
    succeed(weft_window_destroy(window), "window_destroy");
    for (std::uint32_t peer = 0; peer < size; ++peer) {
      require(std::all_of(bytes + peer * kArea, bytes + (peer + 1) * kArea, [&](int b) { return b == int(peer) + 1; }),
              "bytes after the end of the window");
    }
    succeed(weft_window_destroy(empty), "window_destroy");
    if (is_allocated) succeed(weft_memory_free(memory), "free");
  }
}

/// What makes no sense is refused before anything is started: the communicator goes on.
void refusals(weft_communicator_t* world) {
  std::vector<float> memory(64, 1.0F);
  const auto refused = [](weft_status_t status) { require(status == WEFT_ERROR_INVALID_ARGUMENT, "a refusal"); };
  auto* odd = reinterpret_cast<char*>(memory.data()) + 1;
  refused(weft_all_reduce(world, nullptr, memory.data(), 1, WEFT_F32, WEFT_SUM));
  refused(weft_all_reduce(world, odd, memory.data() + 8, 1, WEFT_F32, WEFT_SUM));
  refused(weft_all_reduce(world, memory.data(), memory.data() + 1, 8, WEFT_F32, WEFT_SUM));
  refused(weft_all_reduce(world, memory.data(), memory.data() + 8, 1, static_cast<weft_type_t>(256), WEFT_SUM));
  refused(weft_all_reduce(world, memory.data(), memory.data() + 8, 1, WEFT_F32, static_cast<weft_op_t>(256)));
  refused(weft_start_all_reduce(world, memory.data(), memory.data() + 8, 1, WEFT_F32, WEFT_SUM, nullptr));
  refused(weft_start_send(world, memory.data(), 1, WEFT_F32, 0, nullptr));
  refused(weft_start_receive(world, memory.data(), 1, WEFT_F32, 0, nullptr));
  refused(weft_broadcast(world, memory.data(), memory.data() + 8, 1, WEFT_F32, weft_size(world)));
  require(weft_all_reduce(world, memory.data(), memory.data() + 8, ~std::size_t{0} / 4, WEFT_F32, WEFT_SUM) ==
              WEFT_ERROR_OUT_OF_RANGE,
          "a count beyond the address space");
  run(world, {.count = 5});
}

}  // namespace
}  // namespace weft::multi

int main(int argc, char** argv) {
  using namespace weft::multi;  // NOLINT(google-build-using-namespace)
  weft_communicator_t* world = create();
  for (int i = 1; i < argc; ++i) {
    const std::string what = argv[i];
    if (what == "sweep")
      sweep(world);
    else if (what == "communicators")
      communicators(world);
    else if (what == "sends")
      sends(world);
    else if (what == "windows")
      windows(world);
    else if (what == "refusals")
      refusals(world);
    else
      fail("unknown part " + what);
  }
  succeed(weft_destroy(world), "weft_destroy");
  return 0;
}
