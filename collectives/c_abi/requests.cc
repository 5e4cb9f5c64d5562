// Requests and groups.
#include <algorithm>
#include <vector>

#include "collectives/c_abi/c_abi.h"

namespace weft::c_abi {
namespace {

using collectives::engine::RequestId;

struct Pending {
  weft_communicator* communicator;
  std::uint64_t generation;
  RequestId id;
};
/// The group that this thread is in. The depth by itself, because every call asks for it and it has no destructor.
constinit thread_local std::uint32_t group_depth = 0;
thread_local std::vector<Pending> group_pending;

RequestId id_of(const weft_request_t& request) noexcept {
  return {static_cast<std::uint32_t>(request.opaque[1]), static_cast<std::uint32_t>(request.opaque[1] >> 32)};
}

/// The third word: the communicator's generation below, and above a check over the rest, so that a request that was
/// never filled in, or was written over, is told from one of Weft before its pointer is followed.
std::uint64_t sealed(std::uint64_t communicator, std::uint64_t id, std::uint64_t generation) noexcept {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15ULL;
  std::uint64_t mixed = (communicator ^ (id * kOdd) ^ (generation << 32)) * kOdd;
  mixed = (mixed ^ (mixed >> 29)) * kOdd;
  return (mixed & ~std::uint64_t{0xffffffff}) | (generation & 0xffffffff);
}

std::uint64_t generation_of(const weft_request_t& request) noexcept { return request.opaque[2] & 0xffffffff; }

/// Null if it is no request.
weft_communicator* communicator_of(const weft_request_t& request) noexcept {
  if (request.opaque[2] != sealed(request.opaque[0], request.opaque[1], generation_of(request))) return nullptr;
  return reinterpret_cast<weft_communicator*>(request.opaque[0]);  // NOLINT(performance-no-int-to-ptr)
}

Error not_a_request() {
  return Error{ErrorCode::invalid_argument, "not a request in flight", "Each request is completed once."};
}

Nanos patience_of(const weft_communicator& communicator, std::uint64_t timeout_ns) {
  if (timeout_ns == 0) return communicator.communicator->timeout();
  constexpr auto kMax = static_cast<std::uint64_t>(Nanos::max().count());
  return Nanos{static_cast<std::int64_t>(std::min(timeout_ns, kMax))};
}

}  // namespace

weft_request_t to_request(weft_communicator* communicator, RequestId id) noexcept {
  weft_request_t request{};
  request.opaque[0] = reinterpret_cast<std::uintptr_t>(communicator);
  request.opaque[1] = id.index | std::uint64_t{id.generation} << 32;
  request.opaque[2] = sealed(request.opaque[0], request.opaque[1], communicator->generation);
  return request;
}

bool is_in_group() noexcept { return group_depth > 0; }

weft_status_t finish_blocking(weft_communicator* communicator, const Result<RequestId>& started) {
  if (!started) return report(started.error());
  if (is_in_group()) {
    group_pending.push_back({communicator, communicator->generation, *started});
    return WEFT_SUCCESS;
  }
  return status_of(communicator->communicator->wait(*started, communicator->communicator->timeout()).status);
}

Error null_request() { return Error{ErrorCode::invalid_argument, "request is null"}; }

weft_status_t hand_out(weft_communicator* communicator, const Result<RequestId>& started, weft_request_t* request) {
  if (!started) return report(started.error());
  *request = to_request(communicator, *started);
  return WEFT_SUCCESS;
}

}  // namespace weft::c_abi

using namespace weft::c_abi;  // NOLINT(google-build-using-namespace): the C functions below are this namespace's face.

extern "C" {

weft_status_t weft_test(weft_request_t* request, int* done) {
  return guarded([&] {
    if (request == nullptr || done == nullptr || communicator_of(*request) == nullptr) return report(not_a_request());
    if (const auto error = unusable(communicator_of(*request), generation_of(*request))) {
      *request = weft_request_t{};
      *done = 1;
      return report(*error);
    }
    const weft::collectives::Answer answer = communicator_of(*request)->communicator->test(id_of(*request));
    *done = answer.is_over ? 1 : 0;
    if (answer.is_over) *request = weft_request_t{};
    return status_of(answer.status);
  });
}

weft_status_t weft_wait(weft_request_t* request, uint64_t timeout_ns) {
  return guarded([&] {
    if (request == nullptr || communicator_of(*request) == nullptr) return report(not_a_request());
    if (const auto error = unusable(communicator_of(*request), generation_of(*request))) {
      *request = weft_request_t{};
      return report(*error);
    }
    weft_communicator& communicator = *communicator_of(*request);
    const weft::collectives::Answer answer =
        communicator.communicator->wait(id_of(*request), patience_of(communicator, timeout_ns));
    if (answer.is_over) *request = weft_request_t{};
    return status_of(answer.status);
  });
}

weft_status_t weft_group_begin(void) {
  ++group_depth;
  return WEFT_SUCCESS;
}

weft_status_t weft_group_end(void) {
  return guarded([] {
    if (group_depth == 0) {
      return report(weft::Error{weft::ErrorCode::invalid_argument, "weft_group_end without weft_group_begin"});
    }
    if (--group_depth > 0) return WEFT_SUCCESS;
    // Waiting on one communicator makes progress on the thread's others too, so the order does not matter.
    const std::vector<Pending> pending = std::move(group_pending);
    group_pending.clear();
    weft_status_t first = WEFT_SUCCESS;
    for (const Pending& entry : pending) {
      const auto& communicator = entry.communicator->communicator;
      weft::Status status;
      if (auto error = unusable(entry.communicator, entry.generation)) {
        status = *std::move(error);
      } else {
        status = communicator->wait(entry.id, communicator->timeout()).status;
      }
      if (!status && first == WEFT_SUCCESS) first = report(status.error());
    }
    return first;
  });
}

weft_status_t weft_wait_signal(weft_window_t* window, uint32_t peer, uint64_t count, uint64_t timeout_ns) {
  return guarded([&] {
    if (window == nullptr) return report(weft::Error{weft::ErrorCode::invalid_argument, "window is null"});
    if (const auto error = unusable(window->owner, window->generation)) return report(*error);
    return status_of(window->owner->communicator->wait_signal(window->window, weft::Rank{peer}, count,
                                                              patience_of(*window->owner, timeout_ns)));
  });
}
}
