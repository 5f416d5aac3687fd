#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/interop/formats.h"

namespace tandem::scenarios {

/// What an import needs beside the other program's file.
struct ImportOptions {
  std::string cluster;                     ///< a preset's name; empty: the usual one, as the file says nothing of the cluster
  std::int64_t gpus = 0;                   ///< how many run it; 0 where the file says so
  std::vector<std::string> overrides;      ///< of the scenario, "path=value"
  std::vector<std::string> environment{};  ///< of a script, "NAME=VALUE"
};

struct ImportedScenario {
  std::string yaml;                   ///< the scenario
  std::vector<std::string> warnings;  ///< what the scenario leaves out of what the file means, and what of it is unwise
  std::vector<std::string> assumed;   ///< what the file does not say, and what was taken for it
  std::vector<std::string> ignored;   ///< what of the file has no meaning for a scenario
};

/// Reads the other program's file at `path`, or the importer's file in the folder `path`, into a scenario and validates it.
/// Throws InputError with the place in that file, or the option of the command line, that is at fault.
ImportedScenario import_scenario(const std::string& path, const Importer& importer, const ImportOptions& options);

}  // namespace tandem::scenarios
