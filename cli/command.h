#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/exit_code.h"

namespace CLI {
class App;
}

namespace tandem::cli {

/// A subcommand of `tandem`: a file of this folder, which defines the subcommand's struct and a function that makes one. The
/// table in command.cpp lists those functions.
struct Command {
  virtual ~Command() = default;
  /// Adds the subcommand and its options to the program. The options' values are stored here.
  virtual CLI::App* add_to(CLI::App& app) = 0;
  /// Does what was asked, once the options are parsed.
  virtual ExitCode run() const = 0;

  std::string command_line;  ///< as a person types it in a shell; pages say that it made them
};

/// Makes one of each subcommand, in the order of `tandem --help`.
std::vector<std::unique_ptr<Command>> make_commands();

}  // namespace tandem::cli
