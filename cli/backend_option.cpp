#include "cli/backend_option.h"

#include <CLI/CLI.hpp>

namespace tandem {

void BackendOptions::add_to(CLI::App& command) {
  command.add_option("--backend", backend, "host: CPU threads, cuda: GPUs")->required()->check(CLI::IsMember({"host", "cuda"}));
  command.add_flag("--graph", graph, "with cuda: capture the step and launch it as one CUDA graph");
}

}  // namespace tandem
