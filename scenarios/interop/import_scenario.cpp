#include "scenarios/interop/import_scenario.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <utility>

#include "runtime/base/text_file.h"
#include "scenarios/interop/usual_clusters.h"
#include "scenarios/reading/document.h"
#include "scenarios/reading/overlay.h"
#include "scenarios/reading/presets.h"
#include "scenarios/reading/yaml_mapping.h"

namespace tandem::scenarios {
namespace {

/// Refuses what no scenario could be, at its place in the other program's file. Returns the warnings.
std::vector<std::string> check(YamlNode document, const std::string& name) {
  expand_preset_names(document);
  resolve_presets(document, "");
  return read_document(document, name).warnings;
}

/// Whether an override says what the sentence would assume, which names its field: "(--set training.sequence)".
bool is_stated(const std::string& sentence, const std::vector<std::string>& overrides) {
  return std::ranges::any_of(overrides, [&](const std::string& change) {
    return sentence.find("(--set " + change.substr(0, change.find('=')) + ")") != std::string::npos;
  });
}

}  // namespace

ImportedScenario import_scenario(const std::string& path, const Importer& importer, const ImportOptions& options) {
  const bool is_folder = !importer.file.empty() && std::filesystem::is_directory(path);
  const std::string file = is_folder ? (std::filesystem::path(path) / importer.file).string() : path;
  const std::string text = read_text_file(file, std::string(importer.what));
  const std::string name = std::filesystem::path(file).stem().string();
  Imported imported = importer.read({.text = text, .file = file, .gpus = options.gpus, .environment = options.environment});
  YamlNode& document = imported.document;
  const Place option{.file = "--cluster"};
  YamlNode& section = section_of(document, "cluster", option);
  put(section, "preset", options.cluster.empty() ? std::string(usual_cluster) : options.cluster, option);
  if (options.cluster.empty())
    imported.assumed.push_back("a cluster of " + std::string(usual_cluster) + ", as the file names none (--cluster)");
  if (options.gpus > 0) put(section, "gpus", options.gpus, {.file = "--gpus"});
  const YamlNode* parallelism = document.find("parallelism");
  if (options.gpus == 0 && parallelism->find(name_of(Axis::dp)) == nullptr)
    throw InputError({.file = file}, "does not tell on how many GPUs it runs, expected --gpus");
  give_name(document, name);
  for (const std::string& change : options.overrides) apply_override(document, change);
  for (const Missing& missing : imported.missing)
    if (find_path(document, missing.field) == nullptr) throw InputError(missing.place, missing.sentence);
  std::erase_if(imported.assumed, [&](const std::string& sentence) { return is_stated(sentence, options.overrides); });
  std::vector<std::string> warnings = std::move(imported.notes);
  std::ranges::move(check(document, name), std::back_inserter(warnings));
  return {scenario_yaml(document), std::move(warnings), std::move(imported.assumed), std::move(imported.ignored)};
}

}  // namespace tandem::scenarios
