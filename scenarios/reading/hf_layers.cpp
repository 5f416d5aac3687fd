#include "scenarios/reading/hf_layers.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/nearest.h"
#include "scenarios/reading/yaml_mapping.h"
#include "scenarios/spec/limits.h"
#include "scenarios/spec/moe_layers.h"
#include "scenarios/spec/names.h"

namespace tandem::scenarios {
namespace {

std::int64_t layers_of(HfConfig& config) {
  const std::int64_t layers = config.integer("num_hidden_layers");
  if (layers < 1 || layers > max_layers)
    config.fail("num_hidden_layers",
                "num_hidden_layers is " + std::to_string(layers) + ", expected a whole number from 1 to " + grouped(max_layers));
  return layers;
}

/// A period that a field states, from 1 on.
std::int64_t period_of(HfConfig& config, const char* field) {
  const std::int64_t period = config.integer(field, 1);
  if (period < 1) config.fail(field, std::string(field) + " is 0, expected 1 or more");
  return period;
}

// What mixes tokens.

/// Where a list of layer types comes from, for errors.
struct Mixers {
  std::vector<Mixer> of_layers;
  std::string field;
};

/// The last of every `period` layers attends in full.
Mixers all_but_last_of(std::int64_t layers, std::int64_t period, Mixer others, std::string field) {
  Mixers mixers{.of_layers = {}, .field = std::move(field)};
  for (std::int64_t l = 0; l < layers; ++l) mixers.of_layers.push_back((l + 1) % period == 0 ? Mixer::full_attention : others);
  return mixers;
}

Mixers stated_mixers(HfConfig& config, std::int64_t layers) {
  const std::string field = "layer_types";
  Mixers mixers{.of_layers = {}, .field = field};
  for (const std::string& word : config.texts(field)) {
    if (word == "deepseek_sparse_attention") {  // `index_topk` says to which keys
      mixers.of_layers.push_back(Mixer::full_attention);
      continue;
    }
    const auto* const found = std::ranges::find(layer_type_names, word, &Named<LayerType>::name);
    if (found == layer_type_names.end() || found->value.feed)
      config.fail(field, "layer_types has " + excerpt(word) +
                             ", expected full_attention, sliding_attention, chunked_attention or linear_attention");
    const bool is_lightning = found->value.mixer == Mixer::linear_attention && config.family().mixers == HfMixers::listed;
    mixers.of_layers.push_back(is_lightning ? Mixer::lightning_attention : found->value.mixer);
  }
  if (static_cast<std::int64_t>(mixers.of_layers.size()) != layers)
    config.fail(field, "layer_types lists " + std::to_string(mixers.of_layers.size()) + " layers, expected num_hidden_layers, " +
                           std::to_string(layers));
  return mixers;
}

Mixers chunked_mixers(HfConfig& config, std::int64_t layers) {
  const std::vector<std::int64_t> rotated = config.integers("no_rope_layers");
  if (rotated.empty())
    return all_but_last_of(layers, period_of(config, "no_rope_layer_interval"), Mixer::chunked_attention, "attention_chunk_size");
  config.has("no_rope_layer_interval");
  Mixers mixers{.of_layers = {}, .field = "no_rope_layers"};
  for (const std::int64_t is : rotated) mixers.of_layers.push_back(is != 0 ? Mixer::chunked_attention : Mixer::full_attention);
  if (static_cast<std::int64_t>(rotated.size()) != layers)
    config.fail("no_rope_layers", "no_rope_layers lists " + std::to_string(rotated.size()) +
                                      " layers, expected num_hidden_layers, " + std::to_string(layers));
  return mixers;
}

/// Without a list the first of every two layers attends in full (configuration_minimax.py).
Mixers listed_mixers(HfConfig& config, std::int64_t layers) {
  const std::string field = "attn_type_list";
  const std::vector<std::int64_t> attends = config.integers(field);
  Mixers mixers{.of_layers = {}, .field = field};
  const auto put = [&](bool is_full) {
    mixers.of_layers.push_back(is_full ? Mixer::full_attention : Mixer::lightning_attention);
  };
  for (const std::int64_t is_full : attends) put(is_full != 0);
  for (std::int64_t l = 0; attends.empty() && l < layers; ++l) put(l % 2 == 0);
  if (static_cast<std::int64_t>(mixers.of_layers.size()) != layers)
    config.fail(field, field + " lists " + std::to_string(attends.size()) + " layers, expected num_hidden_layers, " +
                           std::to_string(layers));
  return mixers;
}

/// As DeepSeek's inference/model.py reads them: an indexer chooses among the keys of 4 positions. Behind those of the layers may
/// stand the ratios of what predicts further tokens.
Mixers compressed_mixers(HfConfig& config, std::int64_t layers) {
  const std::string field = "compress_ratios";
  const std::vector<std::int64_t> ratios = config.integers(field);
  if (ratios.empty() && config.has("layer_types")) return {};  // which says the same
  if (static_cast<std::int64_t>(ratios.size()) < layers)
    config.fail(field, field + " lists " + std::to_string(ratios.size()) + " layers, expected num_hidden_layers, " +
                           std::to_string(layers) + ", and those that predict further tokens");
  Mixers mixers{.of_layers = {}, .field = field};
  for (const std::int64_t ratio : ratios)
    mixers.of_layers.push_back(ratio == 0   ? Mixer::sliding_attention
                               : ratio == 4 ? Mixer::compressed_sparse_attention
                                            : Mixer::heavily_compressed_attention);
  const auto further = mixers.of_layers.begin() + layers;
  if (std::any_of(further, mixers.of_layers.end(), has_compressed_keys))
    config.fail(field, field + " has compressed keys where further tokens are predicted, expected 0 behind the model's layers");
  mixers.of_layers.erase(further, mixers.of_layers.end());
  return mixers;
}

/// With a window, the layers above `max_window_layers` attend in it.
Mixers upper_mixers(HfConfig& config, std::int64_t layers) {
  const bool slides = config.boolean("use_sliding_window", false);
  const std::int64_t below = config.integer("max_window_layers", 0);
  Mixers mixers = all_but_last_of(layers, 1, Mixer::full_attention, "max_window_layers");
  if (slides && config.integer("sliding_window", 0) > 0)
    for (std::int64_t l = below; l < layers; ++l) mixers.of_layers[static_cast<std::size_t>(l)] = Mixer::sliding_attention;
  return mixers;
}

Mixers mixers_by_family(HfConfig& config, std::int64_t layers) {
  const bool has_window = config.is_set("sliding_window");
  switch (config.family().mixers) {
    case HfMixers::alike: {
      Mixers mixers = all_but_last_of(layers, 1, Mixer::full_attention, "sliding_window");
      if (has_window) std::ranges::fill(mixers.of_layers, Mixer::sliding_attention);
      return mixers;
    }
    case HfMixers::upper_slide:
      return upper_mixers(config, layers);
    case HfMixers::pattern: {
      const bool is_private = config.has("_sliding_window_pattern");  // as transformers 4.52 writes it
      const std::int64_t period = period_of(config, is_private ? "_sliding_window_pattern" : "sliding_window_pattern");
      return all_but_last_of(layers, has_window ? period : 1, Mixer::sliding_attention, "sliding_window");
    }
    case HfMixers::chunked:
      return chunked_mixers(config, layers);
    case HfMixers::gated_delta:
      return all_but_last_of(layers, period_of(config, "full_attention_interval"), Mixer::linear_attention,
                             "full_attention_interval");
    case HfMixers::listed: {
      return listed_mixers(config, layers);
    }
    case HfMixers::compressed:
      return compressed_mixers(config, layers);
    case HfMixers::lettered:
      break;  // see put_letters
  }
  return {};
}

/// The shortest list that says the same when it repeats.
std::vector<std::string> shortest(const std::vector<Mixer>& mixers) {
  std::size_t period = 1;
  const auto repeats = [&](std::size_t every) {
    for (std::size_t l = every; l < mixers.size(); ++l)
      if (mixers[l] != mixers[l - every]) return false;
    return true;
  };
  while (!repeats(period)) ++period;
  std::vector<std::string> words;
  for (std::size_t l = 0; l < period; ++l) words.emplace_back(name_in(layer_type_names, LayerType{mixers[l]}));
  return words;
}

/// Layers of one half each, as letters or words.
void put_letters(HfConfig& config, YamlNode& model, std::int64_t layers) {
  const std::string_view field = config.first_of({"hybrid_override_pattern", "layers_block_type"});
  config.require({"hybrid_override_pattern", "layers_block_type"});
  const YamlNode& stated = *config.find(field);
  const std::size_t count = stated.kind == YamlNode::Kind::sequence ? stated.items.size() : stated.text.size();
  if (static_cast<std::int64_t>(count) != layers)
    config.fail(field, std::string(field) + " has " + std::to_string(count) + " layers, expected num_hidden_layers, " +
                           std::to_string(layers));
  config.copy(model, "layer_types", field);
}

// What is not mixed.

/// 1 for a layer with experts.
std::vector<std::int64_t> expert_layers(HfConfig& config, std::int64_t layers) {
  const auto all_where = [&](auto holds) {
    std::vector<std::int64_t> pattern;
    for (std::int64_t l = 0; l < layers; ++l) pattern.push_back(holds(l) ? 1 : 0);
    return pattern;
  };
  const auto lists = [](const std::vector<std::int64_t>& list, std::int64_t layer) {
    return std::ranges::find(list, layer) != list.end();
  };
  switch (config.family().experts) {
    case HfExperts::none:
    case HfExperts::lettered:
    case HfExperts::all:
      return all_where([](std::int64_t) { return true; });
    case HfExperts::after_first: {
      const std::int64_t dense = config.integer("first_k_dense_replace", 0), every = period_of(config, "moe_layer_freq");
      return all_where([&](std::int64_t l) { return l >= dense && l % every == 0; });
    }
    case HfExperts::stepped: {
      const std::vector<std::int64_t> dense = config.integers("mlp_only_layers");
      const std::int64_t step = period_of(config, "decoder_sparse_step");
      return all_where([&](std::int64_t l) { return (l + 1) % step == 0 && !lists(dense, l); });
    }
    case HfExperts::interleaved: {
      const std::vector<std::int64_t> stated = config.integers("moe_layers");
      const std::int64_t step = period_of(config, "interleave_moe_layer_step");
      return all_where([&](std::int64_t l) { return stated.empty() ? (l + 1) % step == 0 : lists(stated, l); });
    }
  }
  return {};
}

}  // namespace

void put_layer_types(HfConfig& config, YamlNode& model) {
  const std::int64_t layers = layers_of(config);
  if (config.family().mixers == HfMixers::lettered) return put_letters(config, model, layers);
  const Mixers by_family = mixers_by_family(config, layers);  // asked even where they are stated, so that its fields are known
  const Mixers mixers = config.has("layer_types") ? stated_mixers(config, layers) : by_family;
  const auto has = [&](Mixer mixer) { return std::ranges::find(mixers.of_layers, mixer) != mixers.of_layers.end(); };
  if (std::ranges::all_of(mixers.of_layers, [](Mixer mixer) { return mixer == Mixer::full_attention; })) return;
  YamlNode types = list_of(shortest(mixers.of_layers));
  types.place = config.place(mixers.field);
  put(model, "layer_types", std::move(types));
  if (has(Mixer::sliding_attention) || config.family().mixers == HfMixers::compressed) {
    config.require({"sliding_window"});
    config.copy(model, "window", "sliding_window");
  }
  if (has(Mixer::chunked_attention)) {
    config.require({"attention_chunk_size"});
    config.copy(model, "attention_chunk", "attention_chunk_size");
  }
}

void put_expert_layers(HfConfig& config, YamlNode& moe) {
  constexpr const char* fields[] = {"mlp_only_layers", "moe_layers",          "first_k_dense_replace",
                                    "moe_layer_freq",  "decoder_sparse_step", "interleave_moe_layer_step"};
  if (config.family().experts == HfExperts::lettered) return;
  const auto found = moe_layers_of(expert_layers(config, layers_of(config)));
  const auto* const stated = std::ranges::find_if(fields, [&](const char* field) { return config.is_set(field); });
  const std::string field = stated == std::end(fields) ? "num_hidden_layers" : *stated;
  if (!found)
    config.fail(field, field +
                           " puts experts into no layer, or not into every n-th from one on, which no scenario expresses; "
                           "expected experts in every n-th layer behind the dense ones");
  if (found->first_dense_layers > 0) put(moe, "first_dense_layers", found->first_dense_layers, config.place(field));
  if (found->every > 1) put(moe, "every", found->every, config.place(field));
}

}  // namespace tandem::scenarios
