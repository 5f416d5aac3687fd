#pragma once

#include <optional>
#include <string>

#include "runtime/base/exit_code.h"

namespace CLI {
class App;
}

namespace tandem::cli {

/// Parses the command line of a program, which is named as `app` is. Returns the exit code where that leaves nothing to do: help
/// or the version was asked for, or the command line is wrong, which one sentence on standard error says, with the nearest valid
/// name or the help to read.
std::optional<ExitCode> parse(CLI::App& app, int argc, const char* const* argv);

/// The command line as a person types it in a shell. `program` stands for its first word, which may be a path.
std::string as_typed(const std::string& program, int argc, const char* const* argv);

}  // namespace tandem::cli
