#include "scenarios/load.h"

#include <algorithm>
#include <filesystem>

#include "scenarios/aliases.h"
#include "scenarios/document.h"
#include "scenarios/overlay.h"
#include "scenarios/presets.h"
#include "scenarios/reader.h"
#include "scenarios/search_spec.h"
#include "scenarios/sections.h"
#include "scenarios/text_file.h"
#include "scenarios/validate.h"

namespace tandem {
namespace {

void read_framework(const YamlNode& training, Scenario& scenario) {
  static const YamlNode generic = make_node(YamlNode::Kind::mapping, {});
  const YamlNode* stated = training.find("framework");
  const YamlNode& framework = stated == nullptr ? generic : *stated;
  scenario.software = read_software(framework);
  const auto choose = [&](Device& device) {
    choose_attention(framework, device);
    if (!scenario.training.attention) return;
    if (!device.efficiency.states(*scenario.training.attention))
      throw InputError(place_of(training, "attention"), "training.attention is " +
                                                            std::string(name_of(*scenario.training.attention)) +
                                                            ", whose speed on " + device.name + " is not known");
    device.efficiency.attention_kernel = *scenario.training.attention;
  };
  choose(scenario.cluster.gpu);
  for (auto& other : scenario.cluster.other_gpus) choose(other.gpu);
}

Scenario read_scenario(const YamlNode& document, const std::string& default_name) {
  const Reader reader(document, "", {"name", "model", "cluster", "parallelism", "training", "faults", "search", "campaign"});
  for (const char* section : {"model", "cluster", "training"})
    if (!reader.has(section))
      reader.fail(section, std::string(section) + " is missing, expected a scenario with model, cluster and training");
  Scenario scenario;
  scenario.name = reader.text("name", default_name);
  scenario.model = read_model(reader.child("model"));
  scenario.cluster = read_cluster(reader.child("cluster"));
  scenario.parallelism = read_parallelism(reader.child("parallelism"));
  scenario.training = read_training(reader.child("training"));
  read_framework(reader.child("training"), scenario);
  read_mtbf(reader.child("faults"));  // of a campaign, but wrong in any command
  scenario.slow_gpus = read_slow_gpus(reader.child("faults"));
  scenario.cluster.link_faults = read_link_faults(reader.child("faults"));
  if (reader.has("search")) read_search(reader.child("search"));  // only `tandem search` needs what it says
  return scenario;
}

/// Megatron-Core's default: DistributedDataParallel takes max(40,000,000, 1,000,000 * data-parallel size) parameters.
std::int64_t default_bucket_parameters(std::int64_t dp) { return std::max<std::int64_t>(40'000'000, 1'000'000 * dp); }

}  // namespace

void tidy_names(YamlNode& document) {
  if (document.kind != YamlNode::Kind::mapping)
    throw InputError(document.place,
                     "the scenario is " + describe(document) + ", expected a mapping with model, cluster and training");
  rename_aliases(document);
  expand_preset_names(document);
}

Scenario read_document(const YamlNode& document, const std::string& default_name) {
  Scenario scenario = read_scenario(document, default_name);
  validate_sharding(scenario, document);
  complete_world(scenario, document);
  validate_cluster(scenario, document);
  validate_placement(scenario, document);
  validate_fabric(scenario, document);
  validate_faults(scenario, document);
  validate_pipeline(scenario, document);
  validate_data_parallel(scenario, document);
  validate_experts(scenario, document);
  validate_training(scenario, document);
  if (scenario.training.bucket_parameters == 0)
    scenario.training.bucket_parameters = default_bucket_parameters(scenario.parallelism.dp);
  scenario.warnings = find_warnings(scenario, document);
  return scenario;
}

Scenario parse_scenario(const std::string& text, const std::string& name, const std::vector<std::string>& overrides) {
  YamlNode document = parse_yaml(text, name);
  tidy_names(document);
  for (const std::string& option : overrides) apply_override(document, option);
  const std::filesystem::path file(name);
  resolve_presets(document, file.parent_path().string());
  return read_document(document, file.stem().string());
}

Scenario load_scenario(const std::string& path, const std::vector<std::string>& overrides) {
  return parse_scenario(read_text_file(path), path, overrides);
}

}  // namespace tandem
