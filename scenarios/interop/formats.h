#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "scenarios/interop/interop.h"

namespace tandem::scenarios {

/// A scenario that was read, with the document it was read from.
struct ScenarioWithDocument {
  Scenario scenario;
  YamlNode document;  ///< presets filled in, overrides applied
};

/// Writes a scenario into another program's configuration: a row of the table in formats.cpp.
struct Exporter {
  std::string_view name;  ///< as --to takes it: "megatron"
  std::string_view what;  ///< what it gives, as help says: "arguments"
  std::string_view file;  ///< name of the file in a folder that holds one of each: "megatron.args"
  Exported (*write)(const ScenarioWithDocument& scenario);
};

/// Reads another program's configuration: a row of the table in formats.cpp.
struct Importer {
  std::string_view name;  ///< as --from takes it: "megatron"
  std::string_view what;  ///< what it takes, as help says: "pretrain_gpt.py's arguments"
  /// `gpus`: how many will run it, 0 where that is not known. Throws InputError, also for values that no scenario expresses.
  Imported (*read)(const std::string& text, const std::string& file, std::int64_t gpus);
};

std::span<const Exporter> exporters();
std::span<const Importer> importers();

/// Null where there is none of that name.
const Exporter* find_exporter(std::string_view name);
const Importer* find_importer(std::string_view name);

}  // namespace tandem::scenarios
