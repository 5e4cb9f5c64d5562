#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace weft::tools {

/// What the shell learns. Whatever a rank of `weft run` exits with is passed on.
inline constexpr int kExitOk = 0;
inline constexpr int kExitWrong = 1;      ///< Wrong results, or a threshold missed.
inline constexpr int kExitUsage = 2;      ///< Arguments that make no sense.
inline constexpr int kExitFailed = 3;     ///< The work could not be done.
inline constexpr int kExitTimeout = 124;  ///< As timeout(1).
inline constexpr int kExitNotRunnable = 126;
inline constexpr int kExitNotFound = 127;
inline constexpr int kExitSignal = 128;  ///< Plus the signal's number, as shells do.

/// Each adds one subcommand to the command line. What it shall do once all arguments are read goes to `chosen`, which
/// returns the exit code.
using Chosen = std::function<int()>;
void add_run(CLI::App& app, Chosen& chosen);
void add_bench(CLI::App& app, Chosen& chosen, int argc, char** argv);
void add_plan(CLI::App& app, Chosen& chosen);
void add_settings(CLI::App& app, Chosen& chosen);
void add_info(CLI::App& app, Chosen& chosen);
void add_bootstrap(CLI::App& app, Chosen& chosen);

}  // namespace weft::tools
