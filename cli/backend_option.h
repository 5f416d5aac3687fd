#pragma once

#include <string>

namespace CLI {
class App;
}

namespace tandem {

/// `--backend host|cuda`, which is required.
void add_backend_option(CLI::App& command, std::string& backend);

/// Where a step is executed.
struct BackendOptions {
  std::string backend = "host";
  bool graph = false;

  /// `--backend` and `--graph`.
  void add_to(CLI::App& command);
};

}  // namespace tandem
