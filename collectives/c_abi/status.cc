#include "collectives/c_abi/c_abi.h"

namespace weft::c_abi {
namespace {

std::string& last_error() {
  static thread_local std::string text;
  return text;
}

constexpr weft_status_t to_status(ErrorCode code) noexcept {
  return static_cast<weft_status_t>(static_cast<int>(code) + 1);
}
static_assert(to_status(ErrorCode::invalid_argument) == WEFT_ERROR_INVALID_ARGUMENT);
static_assert(to_status(ErrorCode::peer_failed) == WEFT_ERROR_PEER_FAILED);
static_assert(to_status(ErrorCode::system) == WEFT_ERROR_SYSTEM);

}  // namespace

weft_status_t report(const Error& error) noexcept {
  try {
    last_error() = error.message();
  } catch (...) {
    last_error().clear();  // Out of memory for the text: the status still says what kind of failure it is.
  }
  return to_status(error.code());
}

weft_status_t status_of(const Status& status) noexcept { return status ? WEFT_SUCCESS : report(status.error()); }

}  // namespace weft::c_abi

extern "C" {

const char* weft_status_name(weft_status_t status) {
  if (status == WEFT_SUCCESS) return "success";
  if (status < 0 || status > WEFT_ERROR_SYSTEM) return "unknown status";
  return weft::name_of(static_cast<weft::ErrorCode>(static_cast<int>(status) - 1)).data();
}

const char* weft_last_error(void) { return weft::c_abi::last_error().c_str(); }

uint32_t weft_version(void) { return WEFT_VERSION_MAJOR * 10000 + WEFT_VERSION_MINOR * 100 + WEFT_VERSION_PATCH; }
}
