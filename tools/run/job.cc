#include "tools/run/job.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <thread>

#include <fmt/format.h>

#include "base/cores.h"
#include "base/log.h"
#include "base/settings.h"
#include "base/settings_report.h"
#include "bootstrap/session.h"
#include "collectives/job.h"
#include "tools/commands.h"
#include "tools/run/placement.h"
#include "tools/run/supervisor.h"

namespace weft::tools {
namespace {

constexpr std::uint32_t kRanksMax = 4096;  ///< Of one machine; a slip of the finger is found before it forks.

std::string text_of_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Everything that is known before the first process starts.
struct Job {
  JobOptions options;
  std::string program;
  std::vector<Place> places;
  std::vector<TestHost> test_hosts;  ///< Empty unless ranks run on them.
  Secret secret;
  std::unique_ptr<bootstrap::Service> service;  ///< Null for one rank.
};

/// Starts the service in the network of a test host: only a thread can be there while this process stays where it is.
Result<std::unique_ptr<bootstrap::Service>> serve_on(const TestHost& host,
                                                     bootstrap::Service::Options service_options) {
  Result<std::unique_ptr<bootstrap::Service>> service = Error{ErrorCode::system, "unreachable"};
  std::thread{[&] {
    const OwnedFd network{open(fmt::format("/proc/{}/ns/net", host.holder_pid).c_str(), O_RDONLY | O_CLOEXEC)};
    if (!network.is_open() || setns(network.get(), CLONE_NEWNET) != 0) {
      service = Error::from_errno(ErrorCode::system, "entering the network of test host " + host.name, errno,
                                  "run this below scripts/test_hosts.sh -- COMMAND");
      return;
    }
    service = bootstrap::Service::start(std::move(service_options));
  }}.join();
  return service;
}

Result<Job> prepare(const JobOptions& options) {
  WEFT_TRY(check(options));
  Job job;
  job.options = options;
  WEFT_TRY_ASSIGN(job.program, find_program(options.command.front(), text_of_variable("PATH")));
  if (options.hosts > 1) {
    WEFT_TRY_ASSIGN(job.test_hosts, parse_test_hosts(text_of_variable("WEFT_TEST_HOSTS")));
    if (!job.test_hosts.empty() && job.test_hosts.size() < options.hosts) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("--hosts {}, but there are {} test hosts", options.hosts, job.test_hosts.size()),
                   "give scripts/test_hosts.sh the same --hosts"};
    }
  }
  job.places = place_ranks(options.ranks, options.hosts);
  job.secret = Secret::random();
  if (!options.output_dir.empty() && mkdir(options.output_dir.c_str(), 0777) != 0 && errno != EEXIST) {
    return Error::from_errno(ErrorCode::system, "making --output-dir " + options.output_dir, errno);
  }
  return job;
}

Status start_service(Job& job) {
  if (job.options.ranks == 1) return {};
  WEFT_TRY_ASSIGN(const Settings settings, Settings::from_environment());
  apply_log_level(settings);
  const bool is_on_test_hosts = !job.test_hosts.empty();
  bootstrap::Service::Options options;
  options.listen_address = (is_on_test_hosts ? job.test_hosts.front().address : "127.0.0.1") + ":0";
  options.size = job.options.ranks;
  options.secret = job.secret;
  options.join_timeout = settings.duration(Setting::bootstrap_timeout);
  auto service = is_on_test_hosts ? serve_on(job.test_hosts.front(), std::move(options))
                                  : bootstrap::Service::start(std::move(options));
  WEFT_TRY_ASSIGN(job.service, std::move(service));
  return {};
}

std::vector<std::string> environment_of(const Job& job, std::uint32_t rank) {
  const Place& place = job.places[rank];
  std::vector<std::string> entries = {
      fmt::format("WEFT_RANK={}", rank),
      fmt::format("WEFT_SIZE={}", job.options.ranks),
      fmt::format("WEFT_LOCAL_RANK={}", place.local_rank),
      fmt::format("WEFT_LOCAL_SIZE={}", place.local_size),
      "WEFT_SECRET=" + job.secret.to_hex(),
      // What frameworks look at.
      fmt::format("RANK={}", rank),
      fmt::format("WORLD_SIZE={}", job.options.ranks),
      fmt::format("LOCAL_RANK={}", place.local_rank),
      fmt::format("LOCAL_WORLD_SIZE={}", place.local_size),
  };
  if (job.options.tags == Tags::on) entries.push_back(fmt::format("{}=1", collectives::kTaggedVariable));
  if (job.service) entries.push_back("WEFT_ADDRESS=" + job.service->address());
  if (job.options.hosts > 1 && job.test_hosts.empty()) {
    entries.push_back(fmt::format("WEFT_HOST_ID={}host{}", text_of_variable("WEFT_HOST_ID"), place.host));
  }
  return merged_environment(environ, entries,
                            {"WEFT_SECRET_FILE", "WEFT_TEST_HOSTS", job.service ? "" : "WEFT_ADDRESS"});
}

std::vector<std::string> command_of(const Job& job, std::uint32_t rank) {
  std::vector<std::string> command = job.options.command;
  command.front() = job.program;
  if (job.test_hosts.empty()) return command;
  // Entering a mount name space resets the working directory.
  const std::string pid = std::to_string(job.test_hosts[job.places[rank].host].holder_pid);
  char* const folder = get_current_dir_name();
  std::vector<std::string> entering = {"/usr/bin/nsenter",
                                       "-t",
                                       pid,
                                       "--net",
                                       "--uts",
                                       "--ipc",
                                       "--mount",
                                       "--",
                                       "/bin/sh",
                                       "-c",
                                       "cd \"$1\" && shift && exec \"$@\"",
                                       "sh",
                                       folder == nullptr ? "/" : folder};
  std::free(folder);
  entering.insert(entering.end(), command.begin(), command.end());
  return entering;
}

std::string tag_of(const Job& job, std::uint32_t rank, int fd) {
  if (job.options.tags == Tags::off) return "";
  const std::size_t width = std::to_string(job.options.ranks - 1).size();
  std::string tag = fmt::format("[{:>{}}] ", rank, width);
  if (isatty(fd) == 0 || std::getenv("NO_COLOR") != nullptr) return tag;
  constexpr int kColors[] = {36, 33, 32, 35, 34, 31};
  return fmt::format("\033[{}m{}\033[0m", kColors[rank % std::size(kColors)], tag);
}

Result<OwnedFd> output_file(const Job& job, std::uint32_t rank, const char* kind) {
  if (job.options.output_dir.empty()) return OwnedFd{};
  const std::string path = fmt::format("{}/rank_{}.{}", job.options.output_dir, rank, kind);
  OwnedFd file{open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
  if (!file.is_open()) return Error::from_errno(ErrorCode::system, "writing " + path, errno);
  return file;
}

/// The core for each rank if everyone can have its own, in the order in which they may be used.
std::vector<std::uint32_t> cores_for(const JobOptions& options) {
  std::vector<std::uint32_t> cores;
  if (options.binding == Binding::none) return cores;
  const CoreSet allowed = CoreSet::of_this_thread();
  for (std::uint32_t core = 0; core < CPU_SETSIZE; ++core) {
    if (allowed.contains(core)) cores.push_back(core);
  }
  return cores;
}

Result<SupervisedRank> start_rank(const Job& job, std::uint32_t rank, int stdin_fd,
                                  std::span<const std::uint32_t> cores) {
  WEFT_TRY_ASSIGN(OwnedFd output, output_file(job, rank, "out"));
  WEFT_TRY_ASSIGN(OwnedFd error, output_file(job, rank, "err"));
  ProcessSpec spec;
  spec.command = command_of(job, rank);
  spec.environment = environment_of(job, rank);
  spec.stdin_fd = stdin_fd;
  if (!cores.empty()) spec.core = cores[rank % cores.size()];
  WEFT_TRY_ASSIGN(Process process, start_process(spec));
  return SupervisedRank{std::move(process), LineTagger{tag_of(job, rank, STDOUT_FILENO)},
                        LineTagger{tag_of(job, rank, STDERR_FILENO)}, std::move(output), std::move(error)};
}

Result<int> run(const JobOptions& options) {
  WEFT_TRY_ASSIGN(Job job, prepare(options));
  // Before any thread: they all inherit what is blocked.
  const sigset_t watched = supervised_signals();
  sigprocmask(SIG_BLOCK, &watched, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  OwnedFd signals{signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK)};
  WEFT_TRY_ASSIGN(Keeper keeper, Keeper::start());
  WEFT_TRY(start_service(job));

  // A terminal stays with this process, or Ctrl-C would not reach it: rank 0 gets what is typed through a pipe.
  OwnedFd input;
  OwnedFd rank_input;
  if (isatty(STDIN_FILENO) != 0) {
    WEFT_TRY_ASSIGN(Pipe pipe, Pipe::create());
    fcntl(pipe.write.get(), F_SETFL, O_NONBLOCK);
    input = std::move(pipe.write);
    rank_input = std::move(pipe.read);
  }
  const std::vector<std::uint32_t> cores = cores_for(options);
  if (!cores.empty() && cores.size() < options.ranks) {
    fmt::print(stderr, "weft run: {} ranks share {} cores: --bind core gives several the same\n", options.ranks,
               cores.size());
  }
  std::vector<SupervisedRank> ranks;
  std::optional<Error> failure;
  for (std::uint32_t rank = 0; rank < options.ranks && !failure; ++rank) {
    const int stdin_fd = rank > 0 ? -1 : rank_input.is_open() ? rank_input.get() : STDIN_FILENO;
    auto started = start_rank(job, rank, stdin_fd, cores);
    if (!started) {
      failure = started.error().within(fmt::format("rank {}", rank));
      continue;
    }
    keeper.entrust(started->process.pid);
    ranks.push_back(std::move(*started));
  }
  rank_input.close();
  // Ranks without the others are ended like a job whose time is over.
  const Deadline deadline = Deadline::after(failure ? Nanos::zero() : options.timeout);
  const int code = Supervisor{std::move(ranks), std::move(input), deadline, std::move(signals)}.run();
  keeper.dismiss();
  if (failure) return *failure;
  return code;
}

}  // namespace

Status check(const JobOptions& options) {
  const auto refuse = [](std::string why, std::string remedy = {}) {
    return Error{ErrorCode::invalid_argument, std::move(why), std::move(remedy)};
  };
  if (options.command.empty()) return refuse("no command", "weft run -n 2 -- COMMAND ARGUMENTS");
  if (options.ranks == 0 || options.ranks > kRanksMax) return refuse(fmt::format("-n is 1 to {}", kRanksMax));
  if (options.hosts == 0 || options.hosts > options.ranks) {
    return refuse(fmt::format("--hosts {} for {} ranks: every host needs one", options.hosts, options.ranks));
  }
  if (options.timeout <= Nanos::zero()) return refuse("--timeout must be longer than 0");
  return {};
}

int run_job(const JobOptions& options) {
  const Result<int> code = run(options);
  if (code) return *code;
  fmt::print(stderr, "weft run: {}\n", code.error().message());
  switch (code.error().code()) {
    case ErrorCode::not_found: return kExitNotFound;
    case ErrorCode::system: return kExitNotRunnable;
    case ErrorCode::invalid_argument: return kExitUsage;
    default: return kExitFailed;
  }
}

}  // namespace weft::tools
