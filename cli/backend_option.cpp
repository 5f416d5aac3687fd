#include "cli/backend_option.h"

#include <CLI/CLI.hpp>

namespace tandem {

void add_backend_option(CLI::App& command, std::string& backend) {
  command.add_option("--backend", backend, "host: CPU threads, cuda: GPUs")->required()->check(CLI::IsMember({"host", "cuda"}));
}

void BackendOptions::add_to(CLI::App& command) {
  add_backend_option(command, backend);
  command.add_flag("--graph", graph, "with cuda: capture the step and launch it as one CUDA graph");
}

}  // namespace tandem
