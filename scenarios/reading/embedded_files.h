#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/embedded_file.h"

namespace tandem::scenarios {

/// The files of scenarios/presets.
std::span<const EmbeddedFile> embedded_files();

/// Returns scenarios/presets/FOLDER/NAME.yaml, or null where there is no such file.
const EmbeddedFile* find_embedded(std::string_view folder, std::string_view name);

/// Returns the names that `find_embedded` knows in a folder, sorted.
std::vector<std::string> embedded_names(std::string_view folder);

}  // namespace tandem::scenarios
