#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weft::bootstrap {

/// A network interface that is up, with the best of its addresses: IPv4 before IPv6, global before link-local before
/// loopback (so a routed address that lives on `lo` is found there).
struct Interface {
  enum class Kind : std::uint8_t { ordinary, loopback };
  std::string name;
  std::string address;  ///< Numeric.
  Kind kind = Kind::ordinary;
};

/// The interfaces of this machine that have an address, in the system's order. Thread: any.
/// Errors: system.
Result<std::vector<Interface>> list_interfaces();

/// The interfaces that `pattern` (WEFT_INTERFACE) selects, best first; never empty.
///
/// pattern:  "eth,ib"    names that begin with one of these, in the order of the list; a name that is exactly an entry
///                       comes before those that only begin with it
///           "=eth1,ib0" exactly these names
///           "^docker"   all but names that begin so;  "^=eth1"  all but exactly these
///           ""          the default: all but loopback, docker*, virbr* and veth*; if there are none, all but loopback;
///                       if there are none either, loopback
/// The signs stand in front of the whole list; blanks around entries are ignored. A negated list does not select
/// loopback unless nothing else exists.
/// Errors: not_found — nothing matches: the message lists what exists; malformed — a sign inside the list.
/// Thread: any.
Result<std::vector<Interface>> select_interfaces(std::span<const Interface> existing, std::string_view pattern);

}  // namespace weft::bootstrap
