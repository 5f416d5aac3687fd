#pragma once

#include <filesystem>

#include "scenarios/reading/yaml_tree.h"

namespace tandem::studies {

/// Throws InputError where a scenario whose presets are not filled in yet names a file outside `folder`: by an absolute path, by
/// "..", or by a link that leads out. So do files that it names, and those that these name. Any text of the scenario is taken for
/// a path, so that no field which reads a file can be forgotten.
void refuse_files_outside(const YamlNode& document, const std::filesystem::path& folder);

}  // namespace tandem::studies
