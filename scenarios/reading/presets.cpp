#include "scenarios/reading/presets.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "runtime/base/nearest.h"
#include "runtime/base/text_file.h"
#include "scenarios/reading/aliases.h"
#include "scenarios/reading/embedded_files.h"
#include "scenarios/reading/framework.h"
#include "scenarios/reading/nccl_topology.h"
#include "scenarios/reading/overlay.h"
#include "scenarios/reading/placement_file.h"
#include "scenarios/reading/profile.h"
#include "scenarios/reading/reader.h"

namespace tandem::scenarios {
namespace {

struct KindNames {
  std::string_view singular;
  std::string_view folder;
};

KindNames names_of(PresetKind kind) {
  constexpr KindNames names[] = {{"model", "scenarios/presets/models/"},
                                 {"cluster", "scenarios/presets/clusters/"},
                                 {"GPU", "scenarios/presets/gpus/"},
                                 {"framework", "scenarios/presets/frameworks/"},
                                 {"campaign", "scenarios/presets/campaigns/"}};
  return names[static_cast<std::size_t>(kind)];
}

const EmbeddedFile* find_embedded(const std::string& path) {
  const auto files = embedded_files();
  const auto found = std::ranges::find(files, path, &EmbeddedFile::path);
  return found == files.end() ? nullptr : &*found;
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

/// <folder><name>.yaml; its field `as` names the file of the folder that has what is not stated there.
std::optional<YamlNode> embedded_fields(const std::string& folder, const std::string& name) {
  const EmbeddedFile* file = find_embedded(folder + name + ".yaml");
  if (file == nullptr) return {};
  YamlNode fields = parse_yaml(std::string(file->text), std::string(file->path));
  if (const YamlNode* as = fields.find("as")) {
    const std::optional<YamlNode> other = embedded_fields(folder, as->text);
    if (!other) throw InputError(as->place, "there is no " + excerpt(as->text) + " beside this file");
    fields.erase("as");
    fill_in(fields, *other);
  }
  return fields;
}

YamlNode embedded_preset(PresetKind kind, const YamlNode& name) {
  const KindNames names = names_of(kind);
  std::optional<YamlNode> fields = embedded_fields(std::string(names.folder), name.text);
  if (!fields)
    throw InputError(name.place, "there is no " + std::string(names.singular) + " preset " + excerpt(name.text) +
                                     suggestion(name.text, preset_names(kind)));
  if (kind != PresetKind::gpu) return std::move(*fields);
  if (auto efficiency = embedded_fields("sim/profiles/", name.text))
    fields->entries.push_back({"efficiency", "efficiency", fields->place, std::move(*efficiency)});
  return std::move(*fields);
}

YamlNode preset_from_file(PresetKind kind, const YamlNode& name, const std::string& folder) {
  if (name.text.ends_with(".json"))
    throw InputError(name.place, "a Hugging Face config.json is not read yet; supported: a preset, a YAML file or a mapping");
  const std::string path = (std::filesystem::path(folder) / name.text).string();
  YamlNode fields = parse_yaml(read_text_file(path), path);
  if (fields.kind != YamlNode::Kind::mapping)
    throw InputError(fields.place,
                     "the file is " + describe(fields) + ", expected the fields of a " + std::string(names_of(kind).singular));
  const std::string beside = std::filesystem::path(path).parent_path().string();
  if (kind == PresetKind::cluster) import_nccl_topology(fields, beside);
  resolve_profile(&fields, beside);
  return fields;
}

bool is_file(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".json");
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
  const bool from_file = is_file(name.text);
  const std::string shown = from_file ? std::filesystem::path(name.text).stem().string() : name.text;
  fill_in(*section, tidied(from_file ? preset_from_file(kind, name, folder) : embedded_preset(kind, name), kind));
  if (section->find("name") == nullptr) section->entries.push_back({"name", "name", name.place, make_scalar(shown, name.place)});
}

}  // namespace

std::vector<std::string> preset_names(PresetKind kind) {
  const std::string_view folder = names_of(kind).folder;
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_files())
    if (file.path.starts_with(folder)) names.push_back(std::filesystem::path(file.path).stem().string());
  std::ranges::sort(names);
  return names;
}

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
    campaign.entries.push_back({"preset", "preset", campaign.place, make_scalar("llama3-2024", campaign.place)});
  resolve(&campaign, PresetKind::campaign, folder);
}

}  // namespace tandem::scenarios
