#pragma once

#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tandem {

/// `--backend host|cuda`, which is required.
CLI::Option* add_backend_option(CLI::App& command, std::string& backend);

/// Where a step is executed.
struct BackendOptions {
  std::string backend = "host";
  bool graph = false;

  /// `--backend` and `--graph`. Returns the first.
  CLI::Option* add_to(CLI::App& command);
};

}  // namespace tandem
