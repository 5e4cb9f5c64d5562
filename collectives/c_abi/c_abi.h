#pragma once

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/out_of_memory.h"
#include "base/result.h"
#include "collectives/communicator.h"
#include "collectives/plan/plan.h"
#include "weft/weft.h"

/// The opaque handles of weft.h. A communicator's is used again after weft_destroy and never freed, so that what still
/// names the destroyed one (a request, a group, a window) is told so.
struct weft_communicator {
  std::unique_ptr<weft::collectives::Communicator> communicator;  ///< Null once destroyed.
  std::uint32_t generation = 0;                                   ///< How many were destroyed in this place.
};
struct weft_window {
  weft_communicator* owner = nullptr;
  std::uint64_t generation = 0;  ///< The owner's.
  std::uint32_t window = 0;
};
struct weft_plan {
  weft::collectives::plan::Plan plan;
};

namespace weft::c_abi {

/// Keeps the error's text for weft_last_error() and gives its status.
weft_status_t report(const Error& error) noexcept;
/// The status of a Status, reported if it is an error.
weft_status_t status_of(const Status& status) noexcept;

/// Puts back the caller's errno at the end: system calls that succeed in the end (a socket without room) set it, too.
class KeptErrno {
 public:
  KeptErrno() noexcept : value_(errno) {}
  ~KeptErrno() { errno = value_; }
  KeptErrno(const KeptErrno&) = delete;
  KeptErrno& operator=(const KeptErrno&) = delete;

 private:
  int value_;
};

/// Runs `body`, which returns weft_status_t, so that nothing is thrown out of the C interface and errno stays.
template <class Body>
weft_status_t guarded(Body&& body) noexcept {
  const KeptErrno kept;
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return report(out_of_memory());
  } catch (const std::exception& exception) {
    return report(Error{ErrorCode::system, std::string("unexpected: ") + exception.what()});
  }
}

/// Why a communicator cannot be used: null, or destroyed; nullopt if it can.
std::optional<Error> unusable(const weft_communicator* communicator);
/// The same for what was made by the communicator that its handle held then.
std::optional<Error> unusable(const weft_communicator* communicator, std::uint64_t generation);

/// A started operation as its caller holds it.
weft_request_t to_request(weft_communicator* communicator, collectives::engine::RequestId id) noexcept;

/// Between weft_group_begin and weft_group_end.
bool is_in_group() noexcept;
/// What a blocking call does after its start: waits, or leaves it to the group that the thread is in.
weft_status_t finish_blocking(weft_communicator* communicator, const Result<collectives::engine::RequestId>& started);
/// To be told before anything is started.
Error null_request();
/// What a start call does: hands the request out. Precondition: request is not null.
weft_status_t hand_out(weft_communicator* communicator, const Result<collectives::engine::RequestId>& started,
                       weft_request_t* request);

}  // namespace weft::c_abi
