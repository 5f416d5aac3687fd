#pragma once

#include <string>
#include <vector>

#include "scenarios/interop/formats.h"

namespace tandem::scenarios {

/// Reads the scenario in the file at `path`, applies `overrides` ("path=value") and writes it for another program. Throws
/// InputError where the scenario is wrong.
Exported export_scenario(const std::string& path, const std::vector<std::string>& overrides, const Exporter& exporter);

}  // namespace tandem::scenarios
