#include "cli/shared_options.h"

#include <CLI/CLI.hpp>

#include "runtime/backend_names.h"

namespace tandem::cli {

std::string not_empty(const std::string& path) { return path.empty() ? "is empty, expected a path" : ""; }

CLI::Option* add_backend_option(CLI::App& command, std::string& backend) {
  return command.add_option("--backend", backend, "host: CPU threads, cuda: GPUs")
      ->required()
      ->check(CLI::IsMember({host_backend, cuda_backend}));
}

CLI::Option* BackendOptions::add_to(CLI::App& command) {
  command
      .add_flag("--graph", graph_,
                "with cuda: launch the step as one CUDA graph; --graph=layer, attention, none: a graph for each layer, for what "
                "the framework captures of it, or no graphs. Without it, as the simulation takes it")
      ->each([this](const std::string& scope) {
        graphs = scope == "true" ? GraphScope::full : graph_scope_named(scope);
        if (!graphs) throw CLI::ValidationError("'" + scope + "', expected none, attention, layer or full");
      });
  return add_backend_option(command, backend);
}

}  // namespace tandem::cli
