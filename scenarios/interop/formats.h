#pragma once

#include <span>
#include <string>
#include <string_view>

#include "scenarios/interop/interop.h"

namespace tandem::scenarios {

/// Writes a scenario as another program wants it.
using ScenarioWriter = Exported(const ScenarioWithDocument& scenario);
/// Reads another program's configuration. Throws InputError, also for values that no scenario expresses.
using ScenarioReader = Imported(const ForeignText& from);

/// A row of the table in formats.cpp.
struct Exporter {
  std::string_view name;  ///< as --to takes it: "megatron"
  std::string_view what;  ///< what it gives, as help says: "arguments"
  std::string_view file;  ///< name of the file in a folder that holds one of each: "megatron.args"
  ScenarioWriter* write;
};

/// A row of the table in formats.cpp.
struct Importer {
  std::string_view name;  ///< as --from takes it: "megatron"
  std::string_view what;  ///< what it takes, as help says: "pretrain_gpt.py's arguments"
  ScenarioReader* read;
  std::string_view file = {};  ///< which file of a folder it reads, where it may be given a folder
};

std::span<const Exporter> exporters();
std::span<const Importer> importers();

/// Null where there is none of that name.
const Exporter* find_exporter(std::string_view name);
const Importer* find_importer(std::string_view name);

}  // namespace tandem::scenarios
