#include <algorithm>
#include <charconv>
#include <utility>

#include "scenarios/interop/interop.h"
#include "scenarios/interop/hf/stored_weights.h"
#include "scenarios/reading/hf_model.h"
#include "scenarios/reading/json_tree.h"
#include "scenarios/reading/yaml_mapping.h"

namespace tandem::scenarios {
namespace {

// A config.json says nothing of training. These are to begin with: data parallelism alone, a sequence for each replica.
constexpr std::int64_t usual_sequence = 4096;
constexpr std::int64_t gpus_of_a_node = 8;

/// The usual sequence, where the model has as many positions.
std::int64_t sequence_of(const YamlNode& config) {
  const YamlNode* text = config.find("text_config");
  const YamlNode* node = (text == nullptr ? config : *text).find("max_position_embeddings");
  std::int64_t positions = 0;
  if (node != nullptr) std::from_chars(node->text.data(), node->text.data() + node->text.size(), positions);
  return positions > 0 ? std::min(positions, usual_sequence) : usual_sequence;
}

}  // namespace

/// Reads a config.json of transformers 4 and 5, and holds the model against the index of weights in its folder.
Imported from_hf(const ForeignText& from) {
  HfModel model = read_hf_model(from.text, from.file);
  const YamlNode config = parse_json(from.text, from.file);
  const Place place{.file = from.file};
  for (std::string& difference : differences_from_weights(config, model.fields, from.file))
    model.notes.push_back(std::move(difference));
  YamlNode document = make_node(YamlNode::Kind::mapping, place);
  const std::string name = model.fields.find("name")->text;
  put(document, "name", name, place);
  put(document, "model", std::move(model.fields));
  YamlNode& parallelism = section_of(document, "parallelism", place);
  put(parallelism, name_of(Axis::tp), std::int64_t{1}, place);
  put(parallelism, name_of(Axis::pp), std::int64_t{1}, place);
  if (from.gpus == 0) put(parallelism, name_of(Axis::dp), gpus_of_a_node, place);
  YamlNode& training = section_of(document, "training", place);
  put(training, "sequence", sequence_of(config), place);
  put(training, "micro_batch", std::int64_t{1}, place);
  put(training, "global_batch", from.gpus == 0 ? gpus_of_a_node : from.gpus, place);
  return {.document = std::move(document), .ignored = std::move(model.unused), .notes = std::move(model.notes)};
}

}  // namespace tandem::scenarios
