#include "scenarios/reading/presets.h"

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/base/nearest.h"
#include "runtime/base/text_file.h"
#include "scenarios/reading/aliases.h"
#include "scenarios/reading/embedded_files.h"
#include "scenarios/reading/framework.h"
#include "scenarios/reading/hf_model.h"
#include "scenarios/reading/nccl_topology.h"
#include "scenarios/reading/overlay.h"
#include "scenarios/reading/placement_file.h"
#include "scenarios/reading/profile.h"
#include "scenarios/reading/reader.h"
#include "scenarios/reading/run_defaults.h"

namespace tandem::scenarios {
namespace {

constexpr int most_links = 8;  // of `as`, far more than any preset needs
constexpr const char* usual_campaign = "llama3-2024";

struct KindNames {
  std::string_view singular;
  std::string_view folder;  ///< of scenarios/presets
};

KindNames names_of(PresetKind kind) {
  constexpr KindNames names[] = {
      {"model", "models"}, {"cluster", "clusters"}, {"GPU", "gpus"}, {"framework", "frameworks"}, {"campaign", "campaigns"}};
  return names[static_cast<std::size_t>(kind)];
}

/// A preset's file holds the fields of one section. Puts them where a scenario has them, tidies names up, and takes them out.
YamlNode tidied(YamlNode fields, PresetKind kind) {
  if (kind != PresetKind::model && kind != PresetKind::cluster) return fields;
  const std::string section(names_of(kind).singular);
  YamlNode scenario = make_node(YamlNode::Kind::mapping, fields.place);
  scenario.entries.push_back({section, section, fields.place, std::move(fields)});
  rename_aliases(scenario);
  expand_preset_names(scenario);
  return std::move(scenario.entries.front().value);
}

YamlNode parsed_file(PresetKind kind, const YamlNode& name, const std::string& path) {
  const std::string singular(names_of(kind).singular);
  if (name.text.ends_with(".json")) {
    if (kind == PresetKind::model) return read_hf_model(read_text_file(path, a_hf_config), path).fields;
    throw InputError(name.place, "a " + singular + " in JSON is not read, expected a preset, a YAML file or a mapping");
  }
  const std::string expected = "the fields of a " + singular;
  YamlNode fields = parse_yaml(read_text_file(path, expected), path);
  if (fields.kind != YamlNode::Kind::mapping)
    throw InputError(fields.place, "the file is " + describe(fields) + ", expected " + expected);
  return fields;
}

/// A pod in a file counts from the file that names it.
void resolve_pod(YamlNode& gpu, const std::string& folder) {
  if (read_pod(gpu) == nullptr) return;
  std::string& pod = gpu.find("pod")->text;
  if (is_preset_file(pod)) pod = std::filesystem::absolute(std::filesystem::path(folder) / pod).lexically_normal().string();
}

/// Takes `as` out and fills in what it names, through at most `links` more of them.
void fill_in_as(YamlNode& fields, PresetKind kind, const std::string& folder, int links);

/// Parses each once: a study asks for the same ones at every point.
std::optional<YamlNode> shipped_preset(PresetKind kind, const std::string& name, int links) {
  static std::mutex mutex;
  static std::map<const EmbeddedFile*, YamlNode> parsed;
  const EmbeddedFile* file = find_embedded(names_of(kind).folder, name);
  if (file == nullptr) return {};
  {
    const std::lock_guard lock(mutex);
    if (const auto known = parsed.find(file); known != parsed.end()) return known->second;
  }
  YamlNode fields = tidied(parse_yaml(std::string(file->text), std::string(file->path)), kind);
  fill_in_as(fields, kind, "", links);
  const std::lock_guard lock(mutex);
  return parsed.emplace(file, std::move(fields)).first->second;
}

YamlNode preset_from_file(PresetKind kind, const YamlNode& name, const std::string& folder, int links) {
  const std::string path = (std::filesystem::path(folder) / name.text).string();
  const std::string beside = std::filesystem::path(path).parent_path().string();
  YamlNode fields = parsed_file(kind, name, path);
  if (kind == PresetKind::cluster) import_nccl_topology(fields, beside);
  if (kind == PresetKind::gpu) resolve_pod(fields, beside);
  fields = tidied(std::move(fields), kind);
  fill_in_as(fields, kind, beside, links);
  resolve_profile(&fields, beside);
  return fields;
}

std::optional<YamlNode> find_preset(PresetKind kind, const YamlNode& name, const std::string& folder, int links) {
  return is_preset_file(name.text) ? preset_from_file(kind, name, folder, links) : shipped_preset(kind, name.text, links);
}

YamlNode preset_fields(PresetKind kind, const YamlNode& name, const std::string& folder, int links) {
  if (std::optional<YamlNode> fields = find_preset(kind, name, folder, links)) return std::move(*fields);
  throw InputError(name.place, "there is no " + std::string(names_of(kind).singular) + " preset " + excerpt(name.text) +
                                   suggestion(name.text, preset_names(kind)));
}

void fill_in_as(YamlNode& fields, PresetKind kind, const std::string& folder, int links) {
  const YamlNode* as = fields.find("as");
  if (as == nullptr) return;
  const YamlNode name = *as;
  const std::string singular(names_of(kind).singular);
  if (name.kind != YamlNode::Kind::scalar || name.text.empty())
    throw InputError(name.place, "as is " + describe(name) + ", expected the name of a " + singular + " preset");
  if (links == 0)
    throw InputError(name.place, "`as` leads from file to file without end, expected a " + singular + " preset without it");
  fields.erase("as");
  fill_in(fields, preset_fields(kind, name, folder, links - 1));
}

/// Presets state more than scenarios ask for (run_defaults.h), which is checked all the same.
void drop_run_defaults(YamlNode& fields, PresetKind kind) {
  if (kind == PresetKind::gpu && read_pod(fields) != nullptr) fields.erase("pod");
  if (kind == PresetKind::framework && read_framework_runs(fields)) fields.erase("runs");
}

void resolve(YamlNode* section, PresetKind kind, const std::string& folder) {
  if (section == nullptr || section->kind != YamlNode::Kind::mapping) return;
  const YamlNode* preset = section->find("preset");
  if (preset == nullptr) return;
  const YamlNode name = *preset;
  if (name.kind != YamlNode::Kind::scalar)
    throw InputError(name.place, "preset is " + describe(name) + ", expected the name of a " +
                                     std::string(names_of(kind).singular) + " preset");
  section->erase("preset");
  YamlNode fields = preset_fields(kind, name, folder);
  drop_run_defaults(fields, kind);
  fill_in(*section, fields);
  const std::string shown = is_preset_file(name.text) ? std::filesystem::path(name.text).stem().string() : name.text;
  if (section->find("name") == nullptr) section->entries.push_back({"name", "name", name.place, make_scalar(shown, name.place)});
}

}  // namespace

bool is_preset_file(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".json");
}

std::optional<YamlNode> find_preset(PresetKind kind, const YamlNode& name, const std::string& folder) {
  return find_preset(kind, name, folder, most_links);
}

YamlNode preset_fields(PresetKind kind, const YamlNode& name, const std::string& folder) {
  return preset_fields(kind, name, folder, most_links);
}

std::vector<std::string> preset_names(PresetKind kind) { return embedded_names(names_of(kind).folder); }

void resolve_presets(YamlNode& scenario, const std::string& folder) {
  resolve(scenario.find("model"), PresetKind::model, folder);
  YamlNode* cluster = scenario.find("cluster");
  if (cluster != nullptr && cluster->kind == YamlNode::Kind::mapping) import_nccl_topology(*cluster, folder);
  resolve(cluster, PresetKind::cluster, folder);
  if (cluster != nullptr) {
    const auto resolve_gpu = [&](YamlNode* gpu) {
      resolve(gpu, PresetKind::gpu, folder);
      resolve_profile(gpu, folder);
    };
    move_profile_to_gpu(*cluster);
    resolve_gpu(cluster->find("gpu"));
    for_each_other_gpu(*cluster, resolve_gpu);
  }
  if (YamlNode* training = scenario.find("training"); training != nullptr && training->kind == YamlNode::Kind::mapping) {
    resolve(training->find("framework"), PresetKind::framework, folder);
    apply_framework(scenario);
  }
  read_placement_file(scenario, folder);
}

void resolve_campaign_preset(YamlNode& scenario, const std::string& folder) {
  YamlNode& campaign = *scenario.find("campaign");
  if (campaign.find("preset") == nullptr)
    campaign.entries.push_back({"preset", "preset", campaign.place, make_scalar(usual_campaign, campaign.place)});
  resolve(&campaign, PresetKind::campaign, folder);
}

}  // namespace tandem::scenarios
