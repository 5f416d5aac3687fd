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
  command.add_flag("--graph", graph, "with cuda: capture the step and launch it as one CUDA graph");
  return add_backend_option(command, backend);
}

}  // namespace tandem::cli
