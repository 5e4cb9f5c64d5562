#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "bootstrap/meeting.h"

namespace weft::bootstrap {

/// One collective exchange under way at the service.
/// Invariant: num_contributed == the number of true entries of `contributed`; once `failure` is set it stays, and every
/// member that comes later gets the same error; the record goes when no member can come any more.
struct Meeting::Exchange {
  ExchangeKey key;
  Operation operation = Operation::barrier;
  std::string what;
  std::vector<std::byte> encoded_members;
  std::vector<Rank> members;
  std::unordered_map<Rank, std::uint32_t> index_of;
  std::vector<bool> contributed;
  std::uint32_t num_contributed = 0;
  std::vector<std::vector<std::byte>> values;     ///< all_gather: in group order.
  std::uint64_t conjunction = ~std::uint64_t{0};  ///< agree: AND of what came so far.
  Rank first;                                     ///< Who came first; mismatches are reported against it.
  Nanos started_at{};
  Deadline deadline = Deadline::never();  ///< The earliest of the members'.
  std::optional<Error> failure;

  [[nodiscard]] bool has_member(Rank rank) const { return index_of.contains(rank); }
  [[nodiscard]] bool has_contributed(Rank rank) const {
    const auto found = index_of.find(rank);
    return found != index_of.end() && contributed[found->second];
  }
};

/// `timeout_ns` from now; the maximum of its type is never.
inline Deadline deadline_of(std::uint64_t timeout_ns, const Clock& clock) {
  const auto longest = static_cast<std::uint64_t>(Nanos::max().count());
  return timeout_ns >= longest ? Deadline::never() : Deadline::after(Nanos{static_cast<Nanos::rep>(timeout_ns)}, clock);
}

}  // namespace weft::bootstrap
