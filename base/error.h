#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"

namespace weft {

/// What kind of thing went wrong in the world. Bugs abort (base/check.h); pressure is an ordinary value.
enum class ErrorCode : std::uint8_t {
  invalid_argument,  ///< The caller asked for something that makes no sense; nothing was done.
  out_of_range,      ///< A slice leaves its registered region, or a number leaves its type.
  mismatch,          ///< Ranks of one group called different things, or disagree on the job.
  timeout,           ///< A deadline passed; the error names who was waited for.
  closed,            ///< The object was closed, destroyed or aborted, here or at the peer.
  peer_failed,       ///< The link to a peer broke or the peer died.
  unauthenticated,   ///< The other side did not prove the job's secret.
  malformed,         ///< Bytes from outside (file, socket, setting) do not follow their format.
  limit_exceeded,    ///< A limit of the system or of Weft is too low for what was asked.
  unsupported,       ///< This build, machine or transport cannot do it.
  not_found,         ///< A named thing (file, device, algorithm, interface) does not exist.
  address_in_use,    ///< The port or address that was asked for is taken.
  system,            ///< A system call failed; `system_errno` says how.
};

/// The enumerator's name, for messages and JSON. Thread: any.
std::string_view name_of(ErrorCode code) noexcept;

/// Why something did not work: small to copy (one shared pointer), immutable, made on the cold path.
///
/// `doing` says what was being done, to whom and where; `remedy` says what the reader can do about it.
/// The first cause is what is kept and shown; a later failure is a consequence and does not replace it.
class Error {
 public:
  Error(ErrorCode code, std::string doing, std::string remedy = {});

  /// An error from a failed system call; the errno's text is part of the message.
  static Error from_errno(ErrorCode code, std::string doing, int system_errno, std::string remedy = {});

  /// The same error, about the given peer.
  [[nodiscard]] Error about(Rank peer) const;

  /// The same error with more context in front: "`outer`: `doing`".
  [[nodiscard]] Error within(std::string_view outer) const;

  [[nodiscard]] ErrorCode code() const noexcept { return code_; }
  [[nodiscard]] std::optional<Rank> peer() const noexcept { return peer_; }
  [[nodiscard]] int system_errno() const noexcept;
  [[nodiscard]] const std::string& doing() const noexcept;
  [[nodiscard]] const std::string& remedy() const noexcept;

  /// One line: "code: doing (errno text) [rank N]. Remedy."
  [[nodiscard]] std::string message() const;

 private:
  struct Detail {
    std::string doing;
    std::string remedy;
    int system_errno = 0;
  };
  Error(ErrorCode code, std::optional<Rank> peer, std::shared_ptr<const Detail> detail)
      : code_(code), peer_(peer), detail_(std::move(detail)) {}

  ErrorCode code_;
  std::optional<Rank> peer_;
  std::shared_ptr<const Detail> detail_;
};

}  // namespace weft
