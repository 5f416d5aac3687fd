#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/units.h"

namespace tandem::cli {

/// Where a command's standard output goes.
enum class StandardOutput {
  captured,
  closed,
  full_device
};

/// What takes longer fails a test, ten times as long under a sanitizer.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr Seconds usual_time_limit = 1200;
#else
inline constexpr Seconds usual_time_limit = 120;
#endif

struct CommandOptions {
  StandardOutput standard_output = StandardOutput::captured;
  std::optional<Seconds> kill_after = std::nullopt;  ///< SIGKILL then, unless it has ended
  Seconds time_limit = usual_time_limit;
};

struct CommandResult {
  int exit_code = -1;  ///< -1 when a signal ended it
  int signal = 0;
  Seconds wall = 0;
  std::string out;
  std::string err;
};

/// Runs the program under test in the current folder and waits for it. Fails the test, and kills the command, after
/// `time_limit`.
CommandResult run_tandem(const std::vector<std::string>& arguments, const CommandOptions& options = {});

/// The same for `tandem-run`.
CommandResult run_dag(const std::vector<std::string>& arguments, const CommandOptions& options = {});
/// The same for any program.
CommandResult run_program(const std::string& path, const std::vector<std::string>& arguments, const CommandOptions& options = {});

/// Path of a scenario that comes with the sources: "tiny-host".
std::string scenario_file(const std::string& name);

/// Expects that a command ended with `exit_code`, printed nothing, and said why in one line that holds all `words`.
void expect_refusal(const CommandResult& result, int exit_code, const std::vector<std::string>& words);

}  // namespace tandem::cli
