#pragma once

#include <string>

#include "runtime/execution/execution_site.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tandem::cli {

// Options that `tandem` and `tandem-run` share.

/// Checks the value of an option that takes a path, as CLI11 wants it: returns why it is refused, or nothing.
std::string not_empty(const std::string& path);

/// Adds `--max-memory SIZE`: see runtime/base/memory_limit.h. `enforced`: on this process itself, too, which has few threads.
void add_max_memory_option(CLI::App& command, bool enforced = true);

/// Adds `--backend host|cuda`, which is required.
CLI::Option* add_backend_option(CLI::App& command, std::string& backend);

/// The options that say where a step is executed.
struct BackendOptions : ExecutionChoice {
  /// Adds `--backend` and `--graph`. Returns the former.
  CLI::Option* add_to(CLI::App& command);

 private:
  std::string graph_;
};

}  // namespace tandem::cli
