#include "scenarios/reading/load.h"

#include <algorithm>
#include <filesystem>

#include "runtime/base/text_file.h"
#include "scenarios/checks/complete.h"
#include "scenarios/reading/aliases.h"
#include "scenarios/reading/culprit.h"
#include "scenarios/reading/document.h"
#include "scenarios/reading/overlay.h"
#include "scenarios/reading/presets.h"
#include "scenarios/reading/reader.h"
#include "scenarios/reading/search_spec.h"
#include "scenarios/reading/sections.h"
#include "scenarios/reading/yaml_mapping.h"

namespace tandem::scenarios {
namespace {

/// What CUDA graphs capture is issued for free; and where experts have a fixed number of places, nobody waits to learn how many
/// tokens they got.
///
/// A graph of the whole step is captured before experts have rows. Unless these are padded to a fixed number, all experts are one
/// kernel, which reads them on the GPU, and which fuses what it can.
void spare_issue(const Scenario& scenario, Software& software) {
  const MoeSpec& moe = scenario.model.moe;
  const bool padded = moe.capacity_factor > 0 && moe.pad_to_capacity;
  if (padded) std::erase(software.waits_for, OpKind::route);
  software.waits_for_dispatch = scenario.parallelism.dispatcher == Dispatcher::hybridep && !padded && !software.issues_for_free();
  if (scenario.training.cuda_graph == CudaGraph::none) software.captured.clear();
  if (scenario.training.cuda_graph != CudaGraph::full || padded) software.fuses_experts.clear();
  if (scenario.training.cuda_graph != CudaGraph::full) return;
  software.issue = {};
  software.waits_for.clear();
  software.waits_for_dispatch = false;
  if (!padded) software.kernel_per_expert.clear();
}

void read_framework(const YamlNode& training, Scenario& scenario) {
  static const YamlNode generic = make_node(YamlNode::Kind::mapping, {});
  const YamlNode* stated = training.find("framework");
  const YamlNode& framework = stated == nullptr ? generic : *stated;
  scenario.software = read_software(framework);
  spare_issue(scenario, scenario.software);
  const auto choose = [&](Device& device) {
    choose_kernels(framework, device);
    if (scenario.training.attention) device.efficiency.attention_kernel = *scenario.training.attention;
  };
  choose(scenario.cluster.gpu);
  for (auto& other : scenario.cluster.other_gpus) choose(other.gpu);
  const double attention_dropout = read_attention_dropout(framework);
  if (training.find("attention_dropout") == nullptr && scenario.has_probabilities())
    scenario.training.attention_dropout = attention_dropout;
}

/// They were measured on links without fault.
void forget_collectives(ClusterSpec& cluster) {
  cluster.gpu.collectives.clear();
  for (OtherGpus& other : cluster.other_gpus) other.gpu.collectives.clear();
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
  const bool says_layout = reader.child("parallelism").find("cp_layout") != nullptr;
  if (scenario.training.documents.any() && scenario.parallelism.cp_layout == CpLayout::zigzag && !says_layout)
    scenario.parallelism.cp_layout = CpLayout::document_zigzag;
  read_framework(reader.child("training"), scenario);
  read_mtbf(reader.child("faults"));  // of a campaign, but wrong in any command
  scenario.slow_gpus = read_slow_gpus(reader.child("faults"));
  scenario.jitter = read_jitter(reader.child("faults"), scenario.cluster.gpu);
  scenario.cluster.link_faults = read_link_faults(reader.child("faults"));
  if (!scenario.cluster.link_faults.empty()) forget_collectives(scenario.cluster);
  if (reader.has("search")) read_search(reader.child("search"));  // only `tandem search` needs what it says
  return scenario;
}

struct SectionReader {
  std::string_view section;
  void (*read)(const YamlNode&);
};
constexpr SectionReader section_readers[] = {
    {"model", [](const YamlNode& node) { read_model(node); }},
    {"cluster", [](const YamlNode& node) { read_cluster(node); }},
    {"parallelism", [](const YamlNode& node) { read_parallelism(node); }},
    {"training", [](const YamlNode& node) { read_training(node); }},
};

}  // namespace

void tidy_names(YamlNode& document) {
  if (document.kind != YamlNode::Kind::mapping)
    throw InputError(document.place,
                     "the scenario is " + describe(document) + ", expected a mapping with model, cluster and training");
  rename_aliases(document);
  expand_preset_names(document);
}

void give_name(YamlNode& document, const std::string& name) {
  if (document.find("name") == nullptr) put(document, "name", name, document.place);
}

Scenario read_unchecked(const YamlNode& document, const std::string& default_name) {
  Scenario scenario = read_scenario(document, default_name);
  complete(scenario);
  return scenario;
}

Scenario read_document(const YamlNode& document, const std::string& default_name) {
  Scenario scenario = read_unchecked(document, default_name);
  if (const auto objection = first_objection(scenario)) refuse(document, *objection);
  scenario.warnings = find_warnings(scenario, document);
  return scenario;
}

std::vector<InputError> refusals_of(const YamlNode& document, const std::string& default_name) {
  std::vector<InputError> refusals;
  const auto holds = [&](const auto& work) {
    try {
      work();
      return true;
    } catch (const InputError& error) {
      const auto says_the_same = [&](const InputError& other) { return std::string_view(other.what()) == error.what(); };
      if (std::ranges::none_of(refusals, says_the_same)) refusals.push_back(error);
      return false;
    }
  };
  // Fields by themselves, section by section; between them they can be checked only where all can be read.
  for (const auto& [section, read] : section_readers)
    if (const YamlNode* node = document.find(section)) holds([&] { read(*node); });
  Scenario scenario;
  if (!holds([&] { scenario = read_scenario(document, default_name); })) return refusals;
  complete(scenario);
  for (const Objection& objection : objections(scenario)) holds([&] { refuse(document, objection); });
  return refusals;
}

YamlNode parse_document(const std::string& text, const std::string& name, const std::vector<std::string>& overrides) {
  YamlNode document = parse_yaml(text, name);
  tidy_names(document);
  for (const std::string& option : overrides) apply_override(document, option);
  resolve_presets(document, std::filesystem::path(name).parent_path().string());
  return document;
}

YamlNode load_document(const std::string& path, const std::vector<std::string>& overrides) {
  return parse_document(read_text_file(path, a_scenario), path, overrides);
}

Scenario parse_scenario(const std::string& text, const std::string& name, const std::vector<std::string>& overrides) {
  return read_document(parse_document(text, name, overrides), std::filesystem::path(name).stem().string());
}

Scenario load_scenario(const std::string& path, const std::vector<std::string>& overrides) {
  return parse_scenario(read_text_file(path, a_scenario), path, overrides);
}

}  // namespace tandem::scenarios
