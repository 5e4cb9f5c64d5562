// Jobs, communicators, memory, windows.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

#include "collectives/c_abi/c_abi.h"
#include "collectives/fork_generation.h"
#include "collectives/shared_source.h"

namespace weft::c_abi {
namespace {

using collectives::Communicator;
using collectives::Job;

Error null_argument(const char* name) { return Error{ErrorCode::invalid_argument, std::string(name) + " is null"}; }

/// Handles that hold no communicator. Never destroyed: a process may end with communicators alive.
struct FreeHandles {
  std::uint32_t fork_generation = 0;
  std::mutex mutex;
  std::vector<weft_communicator*> handles;
};
/// A child of fork begins with none: a thread of its parent may have held the lock.
FreeHandles& free_handles() {
  static std::atomic<FreeHandles*> current{nullptr};
  const std::uint32_t generation = collectives::current_fork_generation();
  FreeHandles* handles = current.load(std::memory_order_acquire);
  while (handles == nullptr || handles->fork_generation != generation) {
    auto fresh = std::make_unique<FreeHandles>();
    fresh->fork_generation = generation;
    if (current.compare_exchange_strong(handles, fresh.get(), std::memory_order_acq_rel)) handles = fresh.release();
  }
  return *handles;
}

weft_communicator* handle_for(std::unique_ptr<Communicator> made) {
  FreeHandles& free = free_handles();
  const std::lock_guard lock(free.mutex);
  weft_communicator* handle = nullptr;
  if (free.handles.empty()) {
    handle = new weft_communicator;
  } else {
    handle = free.handles.back();
    free.handles.pop_back();
  }
  handle->communicator = std::move(made);
  return handle;
}

void retire(weft_communicator* handle) {
  handle->communicator.reset();
  ++handle->generation;
  FreeHandles& free = free_handles();
  const std::lock_guard lock(free.mutex);
  // The one that was free for longest is used next, so that a stale name of this one is told so for as long as
  // possible.
  free.handles.insert(free.handles.begin(), handle);
}

weft_status_t give(Result<std::unique_ptr<Communicator>> made, weft_communicator_t** communicator) {
  if (!made) return report(made.error());
  *communicator = *made ? handle_for(std::move(*made)) : nullptr;
  return WEFT_SUCCESS;
}

weft_status_t create_in(Result<std::shared_ptr<Job>> job, weft_communicator_t** communicator) {
  if (!job) return report(job.error());
  return give(Communicator::create(std::move(*job)), communicator);
}

}  // namespace

std::optional<Error> unusable(const weft_communicator* communicator) {
  if (communicator == nullptr) return null_argument("communicator");
  return unusable(communicator, communicator->generation);
}

std::optional<Error> unusable(const weft_communicator* communicator, std::uint64_t generation) {
  if (communicator->communicator != nullptr && communicator->generation == generation) return std::nullopt;
  return Error{ErrorCode::closed, "the communicator was destroyed", "Complete its requests and windows before"};
}

}  // namespace weft::c_abi

using namespace weft::c_abi;  // NOLINT(google-build-using-namespace): the C functions below are this namespace's face.

extern "C" {

weft_status_t weft_unique_id_create(uint32_t size, weft_unique_id_t* id) {
  return guarded([&] {
    if (id == nullptr) return report(null_argument("id"));
    if (size == 0) return report(weft::Error{weft::ErrorCode::invalid_argument, "a job of 0 ranks"});
    const auto founded = weft::collectives::found_job_here(size);
    if (!founded) return report(founded.error());
    static_assert(sizeof(id->bytes) == weft::bootstrap::UniqueId::kSize);
    std::memcpy(id->bytes, founded->bytes.data(), sizeof id->bytes);
    return WEFT_SUCCESS;
  });
}

weft_status_t weft_create(weft_communicator_t** communicator) {
  return guarded([&] {
    if (communicator == nullptr) return report(null_argument("communicator"));
    return create_in(Job::from_environment(), communicator);
  });
}

weft_status_t weft_create_with_id(const weft_unique_id_t* id, uint32_t rank, uint32_t size,
                                  weft_communicator_t** communicator) {
  return guarded([&] {
    if (communicator == nullptr || id == nullptr) return report(null_argument(id == nullptr ? "id" : "communicator"));
    weft::bootstrap::UniqueId unique;
    std::memcpy(unique.bytes.data(), id->bytes, sizeof id->bytes);
    return create_in(Job::from_unique_id(unique, weft::Rank{rank}, size), communicator);
  });
}

weft_status_t weft_split(weft_communicator_t* parent, int32_t color, int32_t key, weft_communicator_t** communicator) {
  return guarded([&] {
    if (communicator == nullptr) return report(null_argument("communicator"));
    if (const auto error = unusable(parent)) return report(*error);
    return give(parent->communicator->split(color, key), communicator);
  });
}

weft_status_t weft_duplicate(weft_communicator_t* parent, weft_communicator_t** communicator) {
  return guarded([&] {
    if (communicator == nullptr) return report(null_argument("communicator"));
    if (const auto error = unusable(parent)) return report(*error);
    return give(parent->communicator->duplicate(), communicator);
  });
}

weft_status_t weft_destroy(weft_communicator_t* communicator) {
  return guarded([&] {
    if (communicator == nullptr) return WEFT_SUCCESS;
    if (const auto error = unusable(communicator)) return report(*error);
    const weft_status_t status = status_of(communicator->communicator->finalize());
    if (communicator->communicator->is_finalized()) retire(communicator);  // Else another thread is inside.
    return status;
  });
}

weft_status_t weft_abort(weft_communicator_t* communicator, const char* reason) {
  return guarded([&] {
    if (const auto error = unusable(communicator)) return report(*error);
    communicator->communicator->abort(reason == nullptr ? "" : reason);
    return WEFT_SUCCESS;
  });
}

uint32_t weft_rank(const weft_communicator_t* communicator) {
  return unusable(communicator) ? 0 : communicator->communicator->rank().value();
}
uint32_t weft_size(const weft_communicator_t* communicator) {
  return unusable(communicator) ? 0 : communicator->communicator->ranks().value();
}

weft_status_t weft_describe(weft_communicator_t* communicator, char* buffer, size_t capacity, size_t* length) {
  return guarded([&] {
    if (const auto error = unusable(communicator)) return report(*error);
    if (buffer == nullptr && capacity > 0) return report(null_argument("buffer"));
    const std::string text = communicator->communicator->describe();
    if (length != nullptr) *length = text.size();
    if (capacity > 0) {
      const std::size_t copied = std::min(text.size(), capacity - 1);
      std::memcpy(buffer, text.data(), copied);
      buffer[copied] = '\0';
    }
    return WEFT_SUCCESS;
  });
}

weft_status_t weft_memory_allocate(size_t size_bytes, void** memory) {
  return guarded([&] {
    if (memory == nullptr) return report(null_argument("memory"));
    const auto allocated = weft::collectives::shared_source().allocate(size_bytes);
    if (!allocated) return report(allocated.error());
    *memory = *allocated;
    return WEFT_SUCCESS;
  });
}

weft_status_t weft_memory_free(void* memory) {
  return guarded([&] {
    if (memory == nullptr) return WEFT_SUCCESS;
    auto& source = weft::collectives::shared_source();
    auto* const bytes = static_cast<std::byte*>(memory);
    if (source.kind_of(bytes, 1) != weft::device::MemoryKind::shared) {
      return report(weft::Error{weft::ErrorCode::invalid_argument,
                                "memory that is not, or no more, of weft_memory_allocate",
                                "Free it once, by the address that weft_memory_allocate gave."});
    }
    source.release(bytes);
    return WEFT_SUCCESS;
  });
}

weft_status_t weft_window_create(weft_communicator_t* communicator, void* base, size_t size_bytes,
                                 weft_window_t** window) {
  return guarded([&] {
    if (window == nullptr) return report(null_argument("window"));
    if (const auto error = unusable(communicator)) return report(*error);
    const auto created = communicator->communicator->create_window(static_cast<std::byte*>(base), size_bytes);
    if (!created) return report(created.error());
    *window = new weft_window{communicator, communicator->generation, *created};
    return WEFT_SUCCESS;
  });
}

weft_status_t weft_window_destroy(weft_window_t* window) {
  return guarded([&] {
    if (window == nullptr) return WEFT_SUCCESS;
    if (const auto error = unusable(window->owner, window->generation)) {
      delete window;
      return report(*error);
    }
    const weft_status_t status = status_of(window->owner->communicator->destroy_window(window->window));
    delete window;
    return status;
  });
}

weft_status_t weft_put(weft_window_t* window, const void* source, size_t size_bytes, uint32_t peer, uint64_t offset,
                       int signal, weft_request_t* request) {
  return guarded([&] {
    if (window == nullptr) return report(null_argument("window"));
    if (const auto error = unusable(window->owner, window->generation)) return report(*error);
    if (request == nullptr) return report(null_request());
    return hand_out(
        window->owner,
        window->owner->communicator->put(window->window, source, size_bytes, weft::Rank{peer}, offset, signal != 0),
        request);
  });
}
}
