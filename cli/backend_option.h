#pragma once

#include <string>

namespace CLI {
class App;
}

namespace tandem {

/// `--backend host|cuda`, which is required.
void add_backend_option(CLI::App& command, std::string& backend);

/// Throws std::runtime_error where this build has no such backend.
void require_built(const std::string& backend);

}  // namespace tandem
