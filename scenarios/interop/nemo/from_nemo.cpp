#include "scenarios/interop/nemo/interpolation.h"
#include "scenarios/interop/nemo/nemo.h"
#include "scenarios/reading/yaml_mapping.h"

namespace tandem::scenarios {
namespace {

std::int64_t count_of(const YamlNode& parallelism, Axis axis) {
  const YamlNode* node = parallelism.find(name_of(axis));
  return node == nullptr ? 1 : std::stoll(node->text);
}

}  // namespace

std::int64_t nemo_gpus(ForeignTree& tree) {
  const YamlNode* devices = tree.find("trainer.devices");
  if (devices == nullptr || !tree.has("trainer.num_nodes")) return 0;
  if (devices->kind == YamlNode::Kind::sequence)
    return tree.positive("trainer.num_nodes", 1) * static_cast<std::int64_t>(devices->items.size());
  const auto is_open = [](const std::string& text) {
    return text == "auto" || text == "-1" || text.find("${") != std::string::npos;
  };
  if (is_open(devices->text) || is_open(tree.text("trainer.num_nodes", ""))) return 0;
  return tree.positive("trainer.num_nodes", 1) * tree.positive("trainer.devices", 1);
}

void put_nemo_gpus(Imported& imported, ForeignTree& tree, const ForeignText& from) {
  const std::int64_t stated = nemo_gpus(tree);
  if (stated == 0) return;
  const Place place = tree.place("trainer.num_nodes");
  if (from.gpus > 0) {
    if (from.gpus != stated)
      imported.notes.push_back(placed(place, "--gpus " + std::to_string(from.gpus) + " goes before the file's " +
                                                 std::to_string(stated) + ", num_nodes times devices"));
    return;
  }
  YamlNode& parallelism = section_of(imported.document, "parallelism");
  const std::int64_t replica =
      count_of(parallelism, Axis::tp) * count_of(parallelism, Axis::pp) * count_of(parallelism, Axis::cp);
  if (stated % replica != 0)
    throw InputError(place, std::to_string(stated) + " GPUs, num_nodes times devices, are no multiple of the " +
                                std::to_string(replica) + " ranks of a replica, expected one, or --gpus");
  put(parallelism, name_of(Axis::dp), stated / replica, place);
}

/// Reads a YAML file of NeMo 1, of its launcher, or of NeMo 2.
Imported from_nemo(const ForeignText& from) {
  YamlNode root = parse_yaml(from.text, from.file);
  resolve_interpolations(root);
  const YamlNode* trainer = root.find("trainer");
  if (root.kind != YamlNode::Kind::mapping || trainer == nullptr || root.find("model") == nullptr)
    throw InputError({.file = from.file},
                     "has no sections `trainer` and `model`, expected a configuration of NeMo 1 "
                     "(megatron_*_config.yaml), of its launcher, or a recipe of NeMo 2");
  const bool is_recipe = trainer->find("strategy") != nullptr || root.find("model")->find("config") != nullptr;
  return is_recipe ? read_nemo_recipe(from, std::move(root)) : read_nemo_configuration(from, std::move(root));
}

}  // namespace tandem::scenarios
