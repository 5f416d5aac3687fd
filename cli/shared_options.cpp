#include "cli/shared_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <limits>

#include "runtime/backend_names.h"
#include "runtime/base/memory_limit.h"

namespace tandem::cli {

std::string not_empty(const std::string& path) { return path.empty() ? "is empty, expected a path" : ""; }

void add_max_memory_option(CLI::App& command, bool enforced) {
  constexpr bool thousands = true;  // KB and GB are powers of 1000, KiB and GiB of 1024
  command
      .add_option_function<std::uint64_t>(
          "--max-memory",
          [enforced](const std::uint64_t& bytes) {
            limit_memory(static_cast<Bytes>(std::min<std::uint64_t>(bytes, std::numeric_limits<Bytes>::max())));
            if (enforced) enforce_memory_limit();
          },
          "refuse what would take more memory: 8GB, 500MiB (default: what is free on this machine)")
      ->transform(CLI::AsSizeValue(thousands))
      ->check([](const std::string& bytes) { return bytes == "0" ? "is no memory at all, expected a size such as 8GB" : ""; })
      ->type_name("SIZE");
}

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
