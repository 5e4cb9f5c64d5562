#include "base/error.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace weft {

std::string_view name_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid argument";
    case ErrorCode::out_of_range: return "out of range";
    case ErrorCode::mismatch: return "mismatch";
    case ErrorCode::timeout: return "timeout";
    case ErrorCode::closed: return "closed";
    case ErrorCode::peer_failed: return "peer failed";
    case ErrorCode::unauthenticated: return "unauthenticated";
    case ErrorCode::malformed: return "malformed";
    case ErrorCode::limit_exceeded: return "limit exceeded";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::not_found: return "not found";
    case ErrorCode::address_in_use: return "address in use";
    case ErrorCode::system: return "system";
  }
  return "unknown";
}

Error::Error(ErrorCode code, std::string doing, std::string remedy)
    : code_(code), detail_(std::make_shared<const Detail>(Detail{std::move(doing), std::move(remedy), 0})) {}

Error Error::from_errno(ErrorCode code, std::string doing, int system_errno, std::string remedy) {
  return Error{code, std::nullopt,
               std::make_shared<const Detail>(Detail{std::move(doing), std::move(remedy), system_errno})};
}

Error Error::about(Rank peer) const { return Error{code_, peer, detail_}; }

Error Error::within(std::string_view outer) const {
  Detail detail = *detail_;
  detail.doing = fmt::format("{}: {}", outer, detail.doing);
  return Error{code_, peer_, std::make_shared<const Detail>(std::move(detail))};
}

int Error::system_errno() const noexcept { return detail_->system_errno; }
const std::string& Error::doing() const noexcept { return detail_->doing; }
const std::string& Error::remedy() const noexcept { return detail_->remedy; }

std::string Error::message() const {
  std::string text = fmt::format("{}: {}", name_of(code_), detail_->doing);
  if (detail_->system_errno != 0) text += fmt::format(" ({})", std::strerror(detail_->system_errno));
  if (peer_) {
    // Not twice, where what was done quotes another rank's message about the same one.
    const std::string about = fmt::format(" [rank {}]", peer_->value());
    if (text.find(about) == std::string::npos) text += about;
  }
  if (!detail_->remedy.empty()) text += fmt::format(". {}", detail_->remedy);
  return text;
}

}  // namespace weft
