#include "cli/backend_option.h"

#include <CLI/CLI.hpp>
#include <stdexcept>

namespace tandem {

void add_backend_option(CLI::App& command, std::string& backend) {
  command.add_option("--backend", backend, "host: CPU threads, cuda: GPUs")->required()->check(CLI::IsMember({"host", "cuda"}));
}

void require_built(const std::string& backend) {
  if (backend == "cuda")
    throw std::runtime_error("no backend cuda: this tandem was built without CUDA; available: --backend host");
}

}  // namespace tandem
