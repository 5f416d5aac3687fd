#include "scenarios/interop/torchtitan/torchtitan_configuration.h"

#include <algorithm>
#include <filesystem>

#include "runtime/base/nearest.h"
#include "scenarios/interop/torchtitan/python_recipe.h"
#include "scenarios/interop/torchtitan/torchtitan_models.h"
#include "scenarios/reading/json_tree.h"
#include "scenarios/reading/yaml_mapping.h"

namespace tandem::scenarios {
namespace {

/// The variable that run_train.sh hands to --config.
constexpr std::string_view config_variable = "CONFIG";

std::string variable(std::span<const std::string> environment, std::string_view name) {
  for (const std::string& entry : environment)
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') return entry.substr(name.size() + 1);
  return {};
}

std::string chosen_function(const ForeignText& from) {
  const std::vector<std::string> names = python_functions(from.text, from.file);
  std::string chosen = variable(from.environment, config_variable);
  if (!chosen.empty()) return chosen;
  if (names.size() == 1) return names.front();
  if (names.empty())
    throw InputError({.file = from.file},
                     "has no function that returns a configuration, expected a config_registry.py of TorchTitan");
  throw InputError({.file = from.file}, "holds " + std::to_string(names.size()) +
                                            " recipes, expected --env CONFIG=NAME with one of: " + joined(names));
}

/// The model of `from torchtitan.models.llama3 import model_registry`, or of the folder, or of the function's name.
std::string model_of_module(const ForeignText& from, const std::string& function) {
  const std::string import_line = "from torchtitan.models.";
  if (const std::size_t at = from.text.find(import_line); at != std::string::npos) {
    const std::size_t begin = at + import_line.size(), end = from.text.find_first_of(". \n", begin);
    std::string name = from.text.substr(begin, end - begin);
    if (is_torchtitan_model(name)) return name;
  }
  std::string folder = std::filesystem::path(from.file).parent_path().filename().string();
  if (is_torchtitan_model(folder)) return folder;
  std::vector<std::string> functions = python_functions(from.text, from.file);
  functions.insert(functions.begin(), function);
  for (const std::string& named : functions)
    for (const TorchTitanModel& model : torchtitan_models())
      if (named.starts_with(model.name)) return std::string(model.name);
  return {};
}

/// `model_spec` of a function: what model_registry("8B", converters=[..]) is called with; `model` in later versions.
void registry_call(YamlNode& root, const std::string& name) {
  for (const char* key : {"model_spec", "model"}) {
    YamlNode* spec = root.find(key);
    if (spec == nullptr || spec->kind != YamlNode::Kind::mapping || spec->find("_type") == nullptr) continue;
    const YamlNode* flavor = spec->find("flavor") != nullptr ? spec->find("flavor") : spec->find("0");
    YamlNode model = make_node(YamlNode::Kind::mapping, spec->place);
    put(model, "name", name, spec->place);
    if (flavor != nullptr) put(model, "flavor", flavor->text, flavor->place);
    if (const YamlNode* converters = spec->find("converters")) put(model, "converters", *converters);
    if (const YamlNode* backend = spec->find("moe_comm_backend")) put(model, "moe_comm_backend", *backend);
    root.erase(key);
    put(root, "model", std::move(model));
    return;
  }
}

/// Whether a converter takes some layers alone, by the names of modules; `layers` are all of them.
bool is_partial(const YamlNode& converter) {
  const YamlNode* names = converter.find("fqns");
  if (names == nullptr) return false;
  return names->items.size() != 1 ? !names->items.empty() || names->kind == YamlNode::Kind::scalar || !names->entries.empty()
                                  : names->items.front().text != "layers" && names->items.front().text != "experts";
}

/// Converters as names: those of classes, or of what their fields say. Returns whether one takes some layers alone.
bool name_converters(YamlNode& list) {
  bool partial = false;
  for (YamlNode& converter : list.items) {
    if (converter.kind != YamlNode::Kind::mapping) continue;
    partial = partial || is_partial(converter);
    const YamlNode* type = converter.find("_type");
    const YamlNode* recipe = converter.find("recipe_name");
    const bool is_mx = recipe != nullptr && recipe->text.starts_with("mx");
    std::string name = type != nullptr ? type->text : is_mx ? "MXFP8LinearConverter" : "Float8LinearConverter";
    name = name.substr(0, name.find('.'));
    if (type == nullptr && converter.find("rank") != nullptr) name = "LoRAConverter";
    const Place place = converter.place;
    converter = make_scalar(name, place);
    converter.quoted = true;
  }
  return partial;
}

/// FullAC.Config() and the like; dumps of them have no names, so that their fields tell.
void checkpointing_mode(YamlNode& root) {
  YamlNode* node = root.find("activation_checkpoint");
  if (node == nullptr) return;
  const Place place = node->place;
  if (node->kind != YamlNode::Kind::mapping) {
    *node = make_node(YamlNode::Kind::mapping, place);
    put(*node, "mode", "none", place);
    return;
  }
  if (node->find("mode") != nullptr) return;
  const auto names = [&](std::string_view part) {
    return std::ranges::any_of(node->entries, [&](const YamlNode::Entry& e) { return e.key.find(part) != std::string::npos; });
  };
  const YamlNode* type = node->find("_type");
  const std::string name = type == nullptr ? std::string() : type->text;
  const bool by_budget = name.starts_with("MemoryBudget") || names("memory_budget");
  const bool selective = name.starts_with("Selective") || names("force_recompute") || names("save_list") || names("save_ops");
  put(*node, "mode", by_budget ? "memory_budget" : selective ? "selective" : "full", place);
  if (selective) put(*node, "selective_ac_option", "op", place);
}

YamlNode drop_unnamed(YamlNode root) {
  const YamlNode* job = root.find("trainer");  // some dumps hold more than the trainer's
  return job != nullptr && job->find("training") != nullptr ? *job : root;
}

}  // namespace

YamlNode parse_torchtitan(const ForeignText& from, TitanForm& form) {
  const std::size_t begin = from.text.find_first_not_of(" \t\r\n");
  const bool is_json = begin != std::string::npos && from.text[begin] == '{';
  const bool is_python = from.file.ends_with(".py") || (!is_json && from.text.find("Trainer.Config(") != std::string::npos);
  form = is_json ? TitanForm::json : is_python ? TitanForm::python : TitanForm::toml;
  if (is_json) return drop_unnamed(parse_json(from.text, from.file));
  if (!is_python) return parse_toml(from.text, from.file);
  const std::string function = chosen_function(from);
  YamlNode root = evaluate_python_function(from.text, from.file, function);
  if (root.kind != YamlNode::Kind::mapping || root.find("_type") == nullptr)
    throw InputError(root.place, excerpt(function) + " returns no call of a configuration class, expected Trainer.Config(..)");
  registry_call(root, model_of_module(from, function));
  if (root.find("name") == nullptr) put(section_of(root, "job"), "description", function, root.place);
  return root;
}

void normalize_torchtitan(YamlNode& root, TitanForm form, const std::string& file) {
  checkpointing_mode(root);
  const bool by_tokens = find_path(root, "training.max_context_length") != nullptr ||
                         find_path(root, "training.num_tokens_per_microbatch_per_dp_rank") != nullptr;
  const bool by_registry = form == TitanForm::python || root.find("model_spec") != nullptr;
  if (root.find("activation_checkpoint") == nullptr && (by_tokens || by_registry)) {
    YamlNode& node = section_of(root, "activation_checkpoint", {.file = file});
    put(node, "mode", by_tokens ? "none" : "selective", {.file = file});
    put(node, "selective_ac_option", "op", {.file = file});
  } else if (by_registry && find_path(root, "activation_checkpoint.selective_ac_option") == nullptr) {
    put(section_of(root, "activation_checkpoint"), "selective_ac_option", "op", {.file = file});  // the one that is left
  }
  for (const char* path : {"model_spec", "model", "model_converters"})
    if (YamlNode* section = root.find(path); section != nullptr)
      if (YamlNode* list = section->find("converters"); list != nullptr && name_converters(*list))
        put(*section, some_layers, true, list->place);
  // A mapping that does not say whether it is enabled is of a version in which null says that it is not.
  if (YamlNode* compile = root.find("compile"); by_tokens && compile != nullptr && compile->kind == YamlNode::Kind::mapping &&
                                                compile->find("enable") == nullptr && form == TitanForm::json)
    put(*compile, "enable", true, compile->place);
}

}  // namespace tandem::scenarios
