#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/plan/plan.h"

namespace weft::collectives::plan {

/// What a receiver does with what arrives.
enum class Combine : std::uint8_t { overwrite, reduce };

/// Makes plans. Calls are read in order, as a sequential program over all ranks; every pair of conflicting accesses of
/// one rank becomes an `after` edge (read after write, write after read, write after write), so that whatever the
/// schedule, the result is that of the sequential reading. Edges that other edges imply directly are not added.
class PlanBuilder {
 public:
  struct Options {
    std::string name = {};
    std::uint32_t parts_per_block = 1;
    std::uint32_t lanes = 1;
    /// With a focus, steps of other ranks are counted (transfer numbers stay the same) but not kept: O(own steps)
    /// memory.
    std::optional<Rank> focus = std::nullopt;
  };
  PlanBuilder(Contract contract, Options options);

  /// Names of chunks; in place they resolve to the larger buffer. The block and part must exist (WEFT_CHECK).
  [[nodiscard]] Location input(Rank rank, std::uint32_t block, std::uint32_t part) const;
  [[nodiscard]] Location output(Rank rank, std::uint32_t block, std::uint32_t part) const;
  /// A new scratch chunk of `rank` of the size of `part`. With a focus, the scratch of other ranks is not counted: all
  /// of their chunks of one part carry the same number.
  [[nodiscard]] Location new_scratch(Rank rank, std::uint32_t part);

  /// Moves `from` to another rank's `to`: to = from, or to = operand op from (operand is `to` unless given).
  void transfer(Location from, Location to, Combine combine, std::optional<Location> operand = std::nullopt,
                std::uint16_t lane = 0);
  /// Nothing if both are the same location (in place).
  void copy(Location from, Location to);
  void reduce(Location left, Location right, Location to);

  [[nodiscard]] std::optional<Rank> focus() const noexcept { return options_.focus; }
  /// True if steps of this rank are kept: all without a focus.
  [[nodiscard]] bool is_kept(Rank rank) const noexcept { return !options_.focus || *options_.focus == rank; }
  /// Counts `count` transfers that do not concern the focus, instead of making them.
  void skip_transfers(std::uint32_t count) noexcept { plan_.num_transfers += count; }

  /// Errors: invalid_argument — a location outside its buffer, chunks of different parts in one step, a transfer
  /// between a
  ///         rank and itself, or a local step over several ranks. The first one, naming the call by its position.
  [[nodiscard]] Result<Plan> finish() &&;

 private:
  struct LastUse {
    std::int64_t writer = -1;
    std::vector<std::uint32_t> readers;  ///< Since that write.
  };
  /// Appends a step of `rank`, inferring its edges from its accesses.
  void append(Rank rank, Step step);
  /// Records the first error of a call that names these locations; true if there is none.
  bool check(std::string_view call, std::initializer_list<Location> locations);
  [[nodiscard]] Location resolve(Location location) const;
  [[nodiscard]] LastUse& last_use(const Location& location);

  Plan plan_;
  Options options_;
  std::uint64_t num_calls_ = 0;
  std::optional<Error> first_error_;
  std::vector<std::vector<LastUse>> last_use_;             ///< Per kept rank: chunks of input, output, scratch.
  std::vector<std::vector<std::uint32_t>> scratch_count_;  ///< Per kept rank and part.
};

}  // namespace weft::collectives::plan
