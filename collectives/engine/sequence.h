#pragma once

#include <cstdint>

#include "collectives/engine/message.h"

namespace weft::collectives::engine {

/// a < b for sequence numbers that wrap.
constexpr bool is_before(std::uint32_t a, std::uint32_t b) noexcept { return static_cast<std::int32_t>(a - b) < 0; }

/// True if the message goes to the sending half of a transfer.
constexpr bool is_for_sender(MessageKind kind) noexcept {
  return kind == MessageKind::ready || kind == MessageKind::consumed;
}

}  // namespace weft::collectives::engine
