#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::studies {

/// What `tandem import` was asked for.
struct ImportRequest {
  std::vector<std::string> paths = {};        ///< files or folders, at least one; sources of one path find one
  std::string cluster = {};                   ///< a preset's name; empty where nobody gave one
  std::int64_t gpus = 0;                      ///< how many run it; 0: not given
  std::vector<std::string> overrides = {};    ///< of the scenario, "path=value"
  std::vector<std::string> environment = {};  ///< of a script, "NAME=VALUE"
  std::optional<std::int64_t> step = {};      ///< the number of a ProfilerStep
};

/// What another program's file became.
struct ImportResult {
  std::string out;                         ///< a scenario, a profile, a graph, JSON: what the row says
  std::vector<std::string> warnings = {};  ///< what `out` leaves out of what the file means, and what of it is unwise
  std::vector<std::string> assumed = {};   ///< what the file does not say, and what was taken for it
  std::vector<std::string> ignored = {};   ///< what has no meaning for Tandem, by its name in the file
};

/// The options of `tandem import` that not every source has a use for.
enum class ImportOption : std::uint8_t {
  several_paths,
  cluster,
  gpus,
  set,
  env,
  step
};

/// A row of the table in import_sources.cpp: a kind of file that Tandem reads.
struct ImportSource {
  std::string_view name;                 ///< as --from takes it: "kineto"
  std::string_view what;                 ///< what it takes, as help says: "torch.profiler's traces"
  std::string_view result;               ///< what it gives, as help says: "the step as JSON"
  std::vector<ImportOption> takes = {};  ///< the options that it has a use for
  /// Reads the files. Throws InputError with the place in a file, or the option, that is at fault.
  ImportResult (*read)(const ImportSource& source, const ImportRequest& request);

  bool has_use_for(ImportOption option) const;
};

std::span<const ImportSource> import_sources();

/// Reads the files as `source` does. Throws InputError where the request has an option that the source has no use for, too.
ImportResult import_files(const ImportSource& source, const ImportRequest& request);

}  // namespace tandem::studies
