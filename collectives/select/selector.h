#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "collectives/algorithms/algorithm.h"
#include "collectives/contract.h"
#include "collectives/select/algorithm_setting.h"
#include "collectives/select/machine.h"
#include "collectives/shape.h"

namespace weft::collectives::select {

/// An algorithm that could plan a call, and how long the call would take with it.
struct Candidate {
  const algorithms::Algorithm* algorithm;
  Nanos predicted;
};

/// Which algorithm plans a call, and why.
struct Choice {
  const algorithms::Algorithm* algorithm;
  std::string reason;  ///< One sentence for people.
  std::vector<Candidate>
      candidates;  ///< All that could, the fastest first; equal ones in the order of all_algorithms().
};

/// Chooses algorithms for one group.
///
/// Choices depend on nothing but the arguments, which are equal on all ranks, so that all ranks choose the same. They
/// do not depend on the root, and nothing is measured at run time. Thread: one at a time.
class Selector {
 public:
  Selector(Shape shape, Machine machine, AlgorithmSetting setting);

  /// The choice for calls with these contract and sizes (contract.ranks == shape.ranks()); it lives as long as the
  /// selector. Made once for each collective, placement and power of two of the size: sizes from 2^k to 2^(k+1)-1 bytes
  /// share the choice for 1.5 * 2^k.
  /// Units:  the size of one block (see Contract) is `count` elements of `type_bytes` bytes.
  /// Errors: unsupported — the setting orders an algorithm that cannot plan this; the remedy lists those that can.
  Result<const Choice*> choose(const Contract& contract, std::uint32_t type_bytes, std::uint64_t count);

 private:
  /// The last two are the size class and the bytes of an element.
  using Key = std::tuple<Collective, Placement, std::uint32_t, std::uint32_t>;

  Result<Choice> make_choice(const algorithms::Request& request, std::uint32_t type_bytes, std::uint64_t count) const;

  Shape shape_;
  Machine machine_;
  AlgorithmSetting setting_;
  std::map<Key, Choice> memo_;
};

}  // namespace weft::collectives::select
