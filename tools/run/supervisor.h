#pragma once

#include <csignal>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "tools/run/line_tagger.h"
#include "tools/run/output_queue.h"
#include "tools/run/process.h"

namespace weft::tools {

/// One rank as its supervisor sees it.
struct SupervisedRank {
  Process process;
  LineTagger output;
  LineTagger error;
  OwnedFd output_file;  ///< Gets a copy of what the rank writes, if open. The same for the next.
  OwnedFd error_file;
  bool has_ended = false;
  int end_code = 0;  ///< CLD_EXITED, CLD_KILLED or CLD_DUMPED, and the exit code or signal.
  int end_status = 0;
};

/// Waits for the ranks of a job, passes on what they write line by line, and ends them all when one fails, when time is
/// over or when this process is told to end. Thread: the one that started the ranks; it has blocked the signals in
/// supervised_signals().
class Supervisor {
 public:
  /// From asking a process to end to ending it.
  static constexpr Nanos kGrace = std::chrono::seconds(3);
  /// How long what dead ranks left behind may still write.
  static constexpr Nanos kDrain = std::chrono::milliseconds(500);

  /// `input` feeds rank 0 from the terminal; may be closed.
  Supervisor(std::vector<SupervisedRank> ranks, OwnedFd input, Deadline deadline, OwnedFd signals);

  /// The job's exit code: of the rank that failed first, 128 + the signal's number if one ended it or this process;
  /// 124 when the deadline passed.
  int run();

 private:
  void poll_once();
  [[nodiscard]] int wait_ms() const;
  /// Whether there may be more.
  bool read_from(SupervisedRank& rank, OwnedFd& source);
  void read_last_words(SupervisedRank& rank);
  void pass_input_on();
  void take_signals();
  void note_ended_ranks();
  void blame(std::size_t rank);
  void end_all(int signal, int exit_code);
  void signal_groups(int signal) const;
  [[nodiscard]] bool all_have_ended() const;
  [[nodiscard]] bool is_all_said() const;

  std::vector<SupervisedRank> ranks_;
  OwnedFd input_;
  Deadline deadline_;
  OwnedFd signals_;
  OutputQueue out_{1};
  OutputQueue err_{2};
  std::optional<int> exit_code_;  ///< Set once the job is being ended.
  Deadline kill_at_ = Deadline::never();
  Deadline drained_at_ = Deadline::never();
  bool is_impatient_ = false;  ///< Told to end twice.
};

/// What a supervisor reads from its signal descriptor.
sigset_t supervised_signals() noexcept;

}  // namespace weft::tools
