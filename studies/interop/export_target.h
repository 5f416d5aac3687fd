#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::studies {

/// What `tandem export` was asked for.
struct ExportRequest {
  std::string scenario;                ///< a path
  std::vector<std::string> overrides;  ///< "path=value"
  std::string folder;                  ///< of targets that write one
  std::string ranks;                   ///< a list such as "0,5,16-31"; empty: all
};

/// What a scenario became.
struct ExportResult {
  std::string text;               ///< of targets that write a file
  std::vector<std::string> lost;  ///< what the other program has no word for: "parallelism.order: why"
  std::string written;            ///< of targets that write a folder: a sentence on what is in it
};

/// A row of the table in export_targets.cpp: what Tandem writes for another program.
struct ExportTarget {
  std::string_view name;  ///< as --to takes it: "megatron"
  std::string_view what;  ///< what it gives, as help says: "arguments"
  bool is_folder = false;
  /// Throws InputError where the scenario is wrong, std::runtime_error where a file cannot be written.
  ExportResult (*write)(const ExportTarget& target, const ExportRequest& request) = nullptr;
};

std::span<const ExportTarget> export_targets();

/// Writes a scenario as `target` does. Throws InputError where a folder is asked for and none is given, or ranks of what has
/// none.
ExportResult export_for(const ExportTarget& target, const ExportRequest& request);

}  // namespace tandem::studies
