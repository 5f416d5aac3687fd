#pragma once

#include <string>

namespace CLI {
class App;
}

namespace tandem {

/// Where a step is executed.
struct BackendOptions {
  std::string backend = "host";
  bool graph = false;

  /// `--backend host|cuda`, which is required, and `--graph`.
  void add_to(CLI::App& command);
};

}  // namespace tandem
