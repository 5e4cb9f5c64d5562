#include "tools/run/supervisor.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "tools/commands.h"

namespace weft::tools {
namespace {

constexpr std::size_t kReadSize = 64 * 1024;
constexpr std::size_t kQueuedMax = 1 << 20;  ///< Then the ranks wait until what they wrote is read.

std::string list_of(const std::vector<std::size_t>& ranks) {
  constexpr std::size_t kNamed = 8;
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < std::min(ranks.size(), kNamed); ++i)
    text += fmt::format("{} {}", i > 0 ? "," : "", ranks[i]);
  if (ranks.size() > kNamed) text += fmt::format(" and {} more", ranks.size() - kNamed);
  return text;
}

bool is_in_foreground() { return tcgetpgrp(STDIN_FILENO) == getpgrp(); }

}  // namespace

sigset_t supervised_signals() noexcept {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&signals, signal);
  return signals;
}

Supervisor::Supervisor(std::vector<SupervisedRank> ranks, OwnedFd input, Deadline deadline, OwnedFd signals)
    : ranks_(std::move(ranks)), input_(std::move(input)), deadline_(deadline), signals_(std::move(signals)) {}

int Supervisor::run() {
  while (!(all_have_ended() && is_all_said())) {
    poll_once();
    if (!exit_code_ && deadline_.has_passed()) {
      std::vector<std::size_t> running;
      for (std::size_t i = 0; i < ranks_.size(); ++i) {
        if (!ranks_[i].has_ended) running.push_back(i);
      }
      err_.add(fmt::format("weft run: time is over: {} still ran\n", list_of(running)));
      end_all(SIGTERM, kExitTimeout);
    }
    if (kill_at_.has_passed()) {
      signal_groups(SIGKILL);
      kill_at_ = Deadline::never();
    }
  }
  // The leaders were not collected yet, so that their numbers still stand for their groups and nobody else's.
  signal_groups(SIGKILL);
  for (SupervisedRank& rank : ranks_) {
    out_.add(rank.output.finish());
    err_.add(rank.error.finish());
    while (waitpid(rank.process.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  const Deadline last_words = Deadline::after(is_impatient_ ? Nanos::zero() : kGrace);
  do {
    out_.flush();
    err_.flush();
    if (out_.size() + err_.size() == 0) break;
    pollfd ready[2] = {{out_.size() > 0 ? out_.fd() : -1, POLLOUT, 0}, {err_.size() > 0 ? err_.fd() : -1, POLLOUT, 0}};
    poll(ready, 2, 100);
  } while (!last_words.has_passed());
  return exit_code_.value_or(kExitOk);
}

void Supervisor::poll_once() {
  std::vector<pollfd> fds = {{signals_.get(), POLLIN, 0}};
  const auto add = [&](int fd, short events) { fds.push_back({fd, events, 0}); };
  add(out_.size() > 0 ? out_.fd() : -1, POLLOUT);
  add(err_.size() > 0 ? err_.fd() : -1, POLLOUT);
  add(input_.is_open() && is_in_foreground() ? STDIN_FILENO : -1, POLLIN);
  const bool has_room = out_.size() < kQueuedMax && err_.size() < kQueuedMax;
  constexpr std::size_t kFirstRank = 4;
  for (const SupervisedRank& rank : ranks_) {
    add(has_room ? rank.process.output.get() : -1, POLLIN);
    add(has_room ? rank.process.error.get() : -1, POLLIN);
  }
  if (poll(fds.data(), fds.size(), wait_ms()) < 0) return;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (fds[kFirstRank + 2 * i].revents != 0) read_from(ranks_[i], ranks_[i].process.output);
    if (fds[kFirstRank + 2 * i + 1].revents != 0) read_from(ranks_[i], ranks_[i].process.error);
  }
  if (fds[3].revents != 0) pass_input_on();
  if (fds[0].revents != 0) take_signals();
  out_.flush();
  err_.flush();
  if (!out_.is_open() && !exit_code_) end_all(SIGTERM, kExitSignal + SIGPIPE);
}

int Supervisor::wait_ms() const {
  Nanos wait = std::min({deadline_.remaining(), kill_at_.remaining(), drained_at_.remaining()});
  // A terminal is not waited for in the background, and nothing tells when that changes.
  if (input_.is_open() && !is_in_foreground()) wait = std::min<Nanos>(wait, std::chrono::milliseconds(500));
  if (exit_code_ && deadline_.has_passed()) wait = std::min(kill_at_.remaining(), drained_at_.remaining());
  if (wait >= std::chrono::hours(1)) return 3'600'000;
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(wait).count()) + 1;
}

bool Supervisor::read_from(SupervisedRank& rank, OwnedFd& source) {
  const bool is_output = &source == &rank.process.output;
  std::array<char, kReadSize> buffer;
  const ssize_t got = read(source.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  OutputQueue& queue = is_output ? out_ : err_;
  LineTagger& tagger = is_output ? rank.output : rank.error;
  if (got <= 0) {
    queue.add(tagger.finish());
    source.close();
    return false;
  }
  const std::string_view bytes{buffer.data(), static_cast<std::size_t>(got)};
  queue.add(tagger.feed(bytes));
  const OwnedFd& file = is_output ? rank.output_file : rank.error_file;
  if (file.is_open() && write(file.get(), bytes.data(), bytes.size()) != got) {
    err_.add(fmt::format("weft run: cannot write to --output-dir: {}\n", std::strerror(errno)));
    (is_output ? rank.output_file : rank.error_file).close();
  }
  return true;
}

void Supervisor::read_last_words(SupervisedRank& rank) {
  // What it wrote fits a pipe; whoever still writes there is not the rank.
  constexpr int kReadsMax = 32;
  for (OwnedFd* source : {&rank.process.output, &rank.process.error}) {
    for (int i = 0; i < kReadsMax && source->is_open() && read_from(rank, *source); ++i) {
    }
  }
}

void Supervisor::pass_input_on() {
  std::array<char, PIPE_BUF> buffer;
  const ssize_t got = read(STDIN_FILENO, buffer.data(), buffer.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  // A terminal gives a line at a time. A rank that does not read them ends that way of talking to it, not the job.
  if (got <= 0 || write(input_.get(), buffer.data(), static_cast<std::size_t>(got)) != got) input_.close();
}

void Supervisor::take_signals() {
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) continue;
    if (exit_code_) {
      is_impatient_ = true;
      signal_groups(SIGKILL);
      continue;
    }
    err_.add(fmt::format("weft run: {} received, ending {} {}; again to end at once\n", strsignal(signal),
                         ranks_.size(), ranks_.size() == 1 ? "rank" : "ranks"));
    end_all(signal == SIGINT ? SIGINT : SIGTERM, kExitSignal + signal);
  }
  note_ended_ranks();
}

void Supervisor::note_ended_ranks() {
  std::optional<std::size_t> failed;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    SupervisedRank& rank = ranks_[i];
    if (rank.has_ended) continue;
    siginfo_t info{};
    // Left uncollected: see the end of run().
    if (waitid(P_PID, static_cast<id_t>(rank.process.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0) continue;
    if (info.si_pid == 0) continue;
    rank.has_ended = true;
    read_last_words(rank);  // They come before the news of its death.
    rank.end_code = info.si_code;
    rank.end_status = info.si_status;
    // Of several that are found dead at once, one that was killed is the likelier cause.
    const bool is_killed = info.si_code != CLD_EXITED;
    if (is_killed || info.si_status != 0) {
      if (!failed || (is_killed && ranks_[*failed].end_code == CLD_EXITED)) failed = i;
    }
  }
  if (failed && !exit_code_) blame(*failed);
  if (all_have_ended() && drained_at_.is_never()) {
    if (!exit_code_) signal_groups(SIGTERM);  // What the ranks left behind.
    drained_at_ = Deadline::after(kDrain);
  }
}

void Supervisor::blame(std::size_t index) {
  const SupervisedRank& rank = ranks_[index];
  if (rank.end_code == CLD_EXITED) {
    err_.add(fmt::format("weft run: rank {} (pid {}) exited with code {}\n", index, rank.process.pid, rank.end_status));
    end_all(SIGTERM, rank.end_status);
  } else {
    err_.add(fmt::format("weft run: rank {} (pid {}) killed by signal {} ({}){}\n", index, rank.process.pid,
                         rank.end_status, strsignal(rank.end_status),
                         rank.end_code == CLD_DUMPED ? ", core dumped" : ""));
    end_all(SIGTERM, kExitSignal + rank.end_status);
  }
}

void Supervisor::end_all(int signal, int exit_code) {
  exit_code_ = exit_code;
  signal_groups(signal);
  signal_groups(SIGCONT);  // A stopped process does not hear of its end.
  kill_at_ = Deadline::after(kGrace);
}

void Supervisor::signal_groups(int signal) const {
  for (const SupervisedRank& rank : ranks_) kill(-rank.process.pid, signal);
}

bool Supervisor::all_have_ended() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const SupervisedRank& rank) { return rank.has_ended; });
}

bool Supervisor::is_all_said() const {
  return is_impatient_ || drained_at_.has_passed() ||
         std::all_of(ranks_.begin(), ranks_.end(), [](const SupervisedRank& rank) {
           return !rank.process.output.is_open() && !rank.process.error.is_open();
         });
}

}  // namespace weft::tools
