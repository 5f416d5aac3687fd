#pragma once

#include <string>

#include "runtime/execution/execution_site.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tandem::cli {

// Options that `tandem` and `tandem-run` share.

/// A check for options that take a path.
std::string not_empty(const std::string& path);

/// `--backend host|cuda`, which is required.
CLI::Option* add_backend_option(CLI::App& command, std::string& backend);

/// Where a step is executed, as options say it.
struct BackendOptions : ExecutionChoice {
  /// `--backend` and `--graph`. Returns the first.
  CLI::Option* add_to(CLI::App& command);
};

}  // namespace tandem::cli
