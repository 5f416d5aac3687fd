#include "scenarios/interop/megatron/megatron_settings.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "runtime/base/nearest.h"
#include "scenarios/interop/megatron/megatron_reader.h"
#include "scenarios/reading/yaml_mapping.h"
#include "scenarios/spec/names.h"

namespace tandem::scenarios {
namespace {

std::string path_below(const std::string& section, std::string_view field) {
  return section.empty() ? std::string(field) : section + "." + std::string(field);
}

std::vector<std::string> words_of(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::scalar) return {node.text};
  std::vector<std::string> words;
  for (const YamlNode& item : node.items) words.push_back(item.text);
  return words;
}

constexpr std::int64_t most_layer_types = 10'000;

std::string bracketed(const YamlNode& list) {
  std::string text;
  for (const YamlNode& item : list.items) text += (text.empty() ? "" : ",") + item.text;
  return "[" + text + "]";
}

}  // namespace

std::string target_name(const YamlNode& node) {
  const YamlNode* target = node.kind == YamlNode::Kind::mapping ? node.find("_target_") : &node;
  const std::string name = target == nullptr ? std::string() : target->text;
  return name.substr(name.rfind('.') + 1);  // all of it where there is no dot
}

std::string type_name(const YamlNode& node) {
  constexpr std::array<std::pair<std::string_view, const char*>, 8> names{{{"float32", "fp32"},
                                                                           {"float", "fp32"},
                                                                           {"bfloat16", "bf16"},
                                                                           {"float16", "fp16"},
                                                                           {"half", "fp16"},
                                                                           {"uint8", "fp8"},
                                                                           {"float8_e4m3fn", "fp8"},
                                                                           {"float8_e5m2", "fp8"}}};
  const std::string name = target_name(node);
  const auto* const found = std::ranges::find(names, name, [](const auto& row) { return row.first; });
  return found == names.end() ? name : found->second;
}

void MegatronSettings::set(std::string_view argument, std::vector<std::string> values, const std::string& path) {
  remove(argument);
  settings_.push_back({std::string(argument), tree_.spelled(path), std::move(values), tree_.place(path)});
}

bool MegatronSettings::is_set(std::string_view argument) const {
  return std::ranges::find(settings_, argument, &Setting::argument) != settings_.end();
}

void MegatronSettings::remove(std::string_view argument) {
  std::erase_if(settings_, [&](const Setting& setting) { return setting.argument == argument; });
}

void MegatronSettings::flag(std::string_view argument, const std::string& path, bool stands) {
  if (stands) return set(argument, {}, path);
  remove(argument);
}

void MegatronSettings::take_value(std::string_view argument, const std::string& path) {
  if (const YamlNode* node = tree_.find(path)) set(argument, words_of(*node), path);
}

void MegatronSettings::take(const std::string& section, std::span<const MegatronField> fields) {
  for (const auto& [field, argument, kind] : fields) {
    const std::string path = path_below(section, field);
    const YamlNode* node = tree_.find(path);
    if (node == nullptr) continue;
    if (kind == FieldKind::flag || kind == FieldKind::inverse_flag)
      flag(argument, path, tree_.boolean(path, false) == (kind == FieldKind::flag));
    else if (kind == FieldKind::type)
      set(argument, {type_name(*node)}, path);
    else
      set(argument, words_of(*node), path);
  }
}

void MegatronSettings::take_transformer(const std::string& section) {
  section_ = section;
  take(section, transformer_fields());
  const std::string positions = path_below(section, "position_embedding_type");
  if (tree_.text(positions, "") == "mrope") set("position-embedding-type", {"rope"}, positions);  // whose angles are scaled
  activation(section);
  attention(section);
  window(section);
  linear_attention(section);
  experts(section);
  const bool is_hybrid =
      tree_.has(path_below(section, "hybrid_override_pattern")) || tree_.has(path_below(section, "hybrid_layer_pattern"));
  if (is_hybrid) take(section, mamba_fields());
  for (const MegatronField& field : mamba_fields()) tree_.find(path_below(section, field.field));
  for (const std::string_view field : neutral_transformer_fields()) {
    const std::string path = path_below(section, field);
    if (const YamlNode* node = tree_.find(path); node != nullptr && node->kind == YamlNode::Kind::mapping) tree_.pass_over(path);
  }
}

void MegatronSettings::activation(const std::string& section) {
  const std::string path = path_below(section, "activation_func");
  const YamlNode* node = tree_.find(path);
  tree_.pass_over(path);
  if (node == nullptr) return;
  const bool gated = tree_.boolean(path_below(section, "gated_linear_unit"), false);
  const std::string name = target_name(*node);
  const bool silu = name == "silu" || name == "swish", gelu = name.find("gelu") != std::string::npos;
  const bool squared = name == "squared_relu";
  if (gated ? !silu && !gelu : !gelu && !squared)
    throw InputError(node->place,
                     path + " is " + excerpt(name) +
                         (gated ? " with gates, expected silu or gelu" : " without gates, expected gelu or squared_relu"));
  if (gated && gelu) {
    remove("swiglu");
    flag(name.find("quick") == std::string::npos ? "geglu" : "quick-geglu", path);
  }
  if (squared) flag("squared-relu", path);
}

void MegatronSettings::attention(const std::string& section) {
  const std::int64_t heads = tree_.integer(path_below(section, "num_attention_heads"), 0);
  const std::string groups = path_below(section, "num_query_groups"), latent = path_below(section, "multi_latent_attention");
  const bool is_latent = tree_.boolean(latent, false);
  if (tree_.has(groups) && tree_.integer(groups, heads) != heads && !is_latent) {
    flag("group-query-attention", groups);
    set("num-query-groups", {std::to_string(tree_.integer(groups, heads))}, groups);
  }
  for (const MegatronField& field : latent_attention_fields()) tree_.find(path_below(section, field.field));
  if (is_latent) {
    flag("multi-latent-attention", latent);
    take(section, latent_attention_fields());
  }
  const std::string backend = path_below(section, "attention_backend");
  const YamlNode* node = tree_.find(backend);
  tree_.pass_over(backend);
  if (node == nullptr) return;
  // megatron/core/transformer/enums.py, AttnBackend
  constexpr std::string_view numbered[] = {"", "flash", "fused", "unfused", "unfused", "auto"};
  const YamlNode* arguments = node->find("_args_");
  std::string name = arguments != nullptr && !arguments->items.empty() ? arguments->items.front().text : target_name(*node);
  if (name.size() == 1 && name[0] >= '1' && name[0] <= '5') name = numbered[name[0] - '0'];
  set("attention-backend", {name == "local" ? "unfused" : name}, backend);
}

void MegatronSettings::window(const std::string& section) {
  const std::string size = path_below(section, "window_size"), skip = path_below(section, "window_attn_skip_freq");
  const YamlNode* positions = tree_.find(size);
  const YamlNode* frequency = tree_.find(skip);
  if (positions == nullptr) return;
  std::string text = positions->text;
  for (const YamlNode& item : positions->items) text += (text.empty() ? "" : ",") + item.text;
  set("window-size", {"(" + text + ")"}, size);
  if (frequency == nullptr) return;
  if (frequency->kind == YamlNode::Kind::scalar) return set("window-attn-skip-freq", {frequency->text}, skip);
  for (const YamlNode& layer : frequency->items)
    layer_types_.emplace_back(
        name_in(layer_type_names, LayerType{layer.text == "0" ? Mixer::full_attention : Mixer::sliding_attention}));
  layer_types_path_ = skip;
}

/// Gated delta nets in place of attention but in every n-th layer, or where a list has 1.
void MegatronSettings::linear_attention(const std::string& section) {
  const std::string variant = path_below(section, "experimental_attention_variant"),
                    frequency = path_below(section, "linear_attention_freq");
  for (const char* field : {"linear_conv_kernel_dim", "linear_key_head_dim", "linear_value_head_dim", "linear_num_key_heads",
                            "linear_num_value_heads", "linear_attention_freq"})
    tree_.find(path_below(section, field));
  const std::string name = tree_.text(variant, "");
  if (name.empty() || tree_.boolean(path_below(section, "multi_latent_attention"), false)) return;
  if (name != "gated_delta_net")
    throw InputError(tree_.place(variant),
                     variant + " is " + excerpt(name) + ", expected gated_delta_net, or dsa with latent attention");
  layer_types_path_ = tree_.has(frequency) ? frequency : variant;
  const auto type_of = [](bool linear) {
    return std::string(name_in(layer_type_names, LayerType{linear ? Mixer::linear_attention : Mixer::full_attention}));
  };
  if (const YamlNode* list = tree_.find(frequency); list != nullptr && list->kind == YamlNode::Kind::sequence) {
    for (const YamlNode& layer : list->items) layer_types_.push_back(type_of(layer.text == "1"));
    return;
  }
  const std::int64_t every = tree_.positive(frequency, 1);
  if (every > most_layer_types)
    throw InputError(tree_.place(frequency), frequency + " is " + std::to_string(every) + ", expected a number of layers");
  layer_types_.assign(static_cast<std::size_t>(every - 1), type_of(true));
  layer_types_.push_back(type_of(false));
}

void MegatronSettings::experts(const std::string& section) {
  for (const MegatronField& field : expert_fields()) tree_.find(path_below(section, field.field));
  const std::string frequency = path_below(section, "moe_layer_freq");
  const YamlNode* layers = tree_.find(frequency);
  if (tree_.integer(path_below(section, "num_moe_experts"), 0) == 0) return;
  take(section, expert_fields());
  const std::string types = path_below(section, "moe_router_load_balancing_type");
  if (const YamlNode* node = tree_.find(types); node != nullptr && !node->items.empty()) {
    const auto counts_sequences = [](const YamlNode& type) { return type.text == "seq_aux_loss"; };
    const bool by_sequence = std::ranges::any_of(node->items, counts_sequences);
    set("moe-router-load-balancing-type", {by_sequence ? "seq_aux_loss" : "aux_loss"}, types);
    const std::string coefficients = path_below(section, "moe_aux_loss_coeff");
    if (const YamlNode* list = tree_.find(coefficients); list != nullptr && !list->items.empty())
      set("moe-aux-loss-coeff", {list->items.front().text}, coefficients);
  }
  if (layers != nullptr)
    set("moe-layer-freq", {layers->kind == YamlNode::Kind::sequence ? bracketed(*layers) : layers->text}, frequency);
}

void MegatronSettings::take_parallel(const std::string& section) {
  take(section, parallel_fields());
  const std::string type = path_below(section, "cp_comm_type");
  if (const YamlNode* node = tree_.find(type); node != nullptr && !words_of(*node).empty())
    set("cp-comm-type", {words_of(*node).front()}, type);
  const std::string stages = path_below(section, "pipeline_model_parallel_size"),
                    chunks = path_below(section, "virtual_pipeline_model_parallel_size");
  if (tree_.integer(stages, 1) == 1 || tree_.integer(chunks, 1) == 1) remove("num-virtual-stages-per-pipeline-rank");
  if (tree_.integer(stages, 1) == 1) remove("no-overlap-p2p-communication");  // nothing is sent
  layout(section);
  recompute(section);
  graphs(section);
}

/// A text in letters, or a list of lists of names (megatron/core/transformer/pipeline_parallel_layer_layout.py).
void MegatronSettings::layout(const std::string& section) {
  const std::string path = path_below(section, "pipeline_model_parallel_layout");
  const YamlNode* node = tree_.find(path);
  tree_.pass_over(path);
  if (node == nullptr) return;
  if (const YamlNode* nested = node->find("layout")) node = nested;  // as its class has it
  if (node->kind == YamlNode::Kind::scalar) return set("pipeline-model-parallel-layout", {node->text}, path);
  constexpr std::array<std::pair<std::string_view, char>, 4> letters{{{"embedding", layout_part::embedding},
                                                                      {"decoder", layout_part::layer},
                                                                      {"mtp", layout_part::mtp},
                                                                      {"loss", layout_part::loss}}};
  PipelineLayout stages;
  for (const YamlNode& stage : node->items) {
    std::string& parts = stages.emplace_back();
    for (const YamlNode& part : stage.items) {
      const std::string name = part.kind == YamlNode::Kind::mapping ? target_name(part) : part.text;
      const auto* const found = std::ranges::find(letters, name, [](const auto& row) { return row.first; });
      if (found == letters.end())
        throw InputError(part.place, path + " holds " + excerpt(name) + ", expected embedding, decoder, mtp or loss");
      parts += found->second;
    }
  }
  if (stages.empty()) throw InputError(node->place, path + " has no stages, expected a list of each one's parts");
  set("pipeline-model-parallel-layout", {layout_text(stages)}, path);
}

void MegatronSettings::recompute(const std::string& section) {
  const std::string granularity = path_below(section, "recompute_granularity");
  for (const char* field : {"recompute_method", "recompute_num_layers", "recompute_modules"})
    tree_.find(path_below(section, field));
  if (!tree_.has(granularity) || truth_of(*tree_.find(granularity)) == Truth::no) return;
  const std::string name = tree_.text(granularity, "");
  set("recompute-granularity", {name}, granularity);
  const std::string modules = path_below(section, "recompute_modules");
  if (name == "selective") {
    if (const YamlNode* node = tree_.find(modules)) set("recompute-modules", words_of(*node), modules);
    return;
  }
  for (const auto& [field, argument] :
       {std::pair{"recompute_method", "recompute-method"}, std::pair{"recompute_num_layers", "recompute-num-layers"}}) {
    const std::string path = path_below(section, field);
    if (const YamlNode* node = tree_.find(path)) set(argument, words_of(*node), path);
  }
}

/// `enable_cuda_graph` and `external_cuda_graph` are what `cuda_graph_impl` was before.
void MegatronSettings::graphs(const std::string& section) {
  const std::string scope = path_below(section, "cuda_graph_scope"), implementation = path_below(section, "cuda_graph_impl");
  const std::string local = path_below(section, "enable_cuda_graph"), external = path_below(section, "external_cuda_graph");
  const YamlNode* scopes = tree_.find(scope);
  std::string name = tree_.text(implementation, "none"), path = implementation;
  if (tree_.boolean(external, false)) name = "transformer_engine", path = external;
  if (tree_.boolean(local, false)) name = "local", path = local;
  if (name == "none") return;
  std::vector<std::string> captured = scopes == nullptr ? std::vector<std::string>{} : words_of(*scopes);
  std::erase(captured, "full");  // the whole layer, as none at all
  if (captured.empty()) {
    captured = {"attn"};
    note(placed(tree_.place(path), path + ": whole layers are captured as graphs, here what precedes and holds their attention"));
  }
  set("cuda-graph-impl", {name}, path);
  set("cuda-graph-scope", captured, scopes == nullptr ? path : scope);
}

void MegatronSettings::take_precision(std::span<const std::string> sections, const std::string& gradients,
                                      const std::string& default_recipe) {
  const auto stated = [&](const char* field) {
    std::string first;
    for (const std::string& section : sections)
      if (const std::string path = path_below(section, field); tree_.has(path) && first.empty()) first = path;
    return first;
  };
  const auto is_on = [&](const std::string& path) { return !path.empty() && truth_of(*tree_.find(path)) != Truth::no; };
  const std::string fp8 = stated("fp8"), fp4 = stated("fp4"), bf16 = stated("bf16"), fp16 = stated("fp16");
  const std::string fp8_recipe = stated("fp8_recipe"), fp4_recipe = stated("fp4_recipe"), ends = stated("first_last_layers_bf16");
  const std::string first = stated("num_layers_at_start_in_bf16"), last = stated("num_layers_at_end_in_bf16");
  const std::string gathers8 = stated("fp8_param_gather"), gathers4 = stated("fp4_param_gather");
  const std::string products = stated("fp8_dot_product_attention"), inputs = stated("activation_func_fp8_input_store");
  const std::string head = stated("fp8_output_proj");
  const std::string maxima = stated("tp_only_amax_red");
  const std::string reused = stated("reuse_grad_buf_for_mxfp8_param_ag");
  const bool half = is_on(fp16) && !is_on(bf16);
  if (is_on(bf16)) flag("bf16", bf16);
  if (half) flag("fp16", fp16);
  if (!gradients.empty() && tree_.has(gradients)) {
    const bool wide = tree_.boolean(gradients, true);
    flag("accumulate-allreduce-grads-in-fp32", gradients, wide && half);
    flag("grad-reduce-in-bf16", gradients, !wide && !half && is_on(bf16));
  }
  if (is_on(fp8)) {
    set("fp8-format", {truth_of(*tree_.find(fp8)) == Truth::yes ? "hybrid" : tree_.text(fp8, "hybrid")}, fp8);
    set("fp8-recipe", {fp8_recipe.empty() ? default_recipe : tree_.text(fp8_recipe, "")}, fp8_recipe.empty() ? fp8 : fp8_recipe);
    flag("fp8-param-gather", gathers8, is_on(gathers8));
    flag("fp8-dot-product-attention", products, is_on(products));
    flag("fp8-output-proj", head, is_on(head));
    flag("tp-only-amax-red", maxima, is_on(maxima));
  }
  if (is_on(fp4)) {
    set("fp4-format", {tree_.text(fp4, "e2m1")}, fp4);
    set("fp4-recipe", {fp4_recipe.empty() ? name_of(Recipe::nvfp4) : tree_.text(fp4_recipe, "")},
        fp4_recipe.empty() ? fp4 : fp4_recipe);
    flag("fp4-param-gather", gathers4, is_on(gathers4));
  }
  flag("activation-func-fp8-input-store", inputs, is_on(inputs));
  if ((is_on(fp8) || is_on(fp4)) && is_on(ends)) {
    flag("first-last-layers-bf16", ends);
    if (!first.empty()) set("num-layers-at-start-in-bf16", {tree_.text(first, "1")}, first);
    if (!last.empty()) set("num-layers-at-end-in-bf16", {tree_.text(last, "1")}, last);
  }
}

void MegatronSettings::take_optimizer(const std::string& section) {
  take(section, optimizer_fields());
  if (tree_.boolean(path_below(section, "use_precision_aware_optimizer"), false)) take(section, optimizer_type_fields());
  for (const MegatronField& field : optimizer_type_fields()) tree_.pass_over(path_below(section, field.field));
  const std::string offload = path_below(section, "optimizer_cpu_offload");
  const std::string share = path_below(section, "optimizer_offload_fraction"),
                    overlap = path_below(section, "overlap_cpu_optimizer_d2h_h2d");
  const double fraction = tree_.number(share, 1);
  const bool overlaps = tree_.boolean(overlap, false);
  if (!tree_.boolean(offload, false)) return;
  if (tree_.has(share)) set("optimizer-offload-fraction", {tree_.text(share, "1")}, share);
  flag("overlap-cpu-optimizer-d2h-h2d", overlap, overlaps && fraction > 0);
}

void MegatronSettings::take_data_parallel(const std::string& section) { take(section, data_parallel_fields()); }

/// Which says nothing unless Megatron FSDP is used.
void MegatronSettings::take_fsdp(const std::string& section) {
  const std::string strategy = path_below(section, "data_parallel_sharding_strategy");
  tree_.find(strategy);
  for (const char* name : {"use_megatron_fsdp", "use_custom_fsdp"}) {
    const std::string path = path_below(section, name);
    if (!tree_.boolean(path, false)) continue;
    flag("use-megatron-fsdp", path);
    set("data-parallel-sharding-strategy", {tree_.text(strategy, "no_shard")}, tree_.has(strategy) ? strategy : path);
  }
}

void MegatronSettings::take_batch(const std::string& section) {
  constexpr std::array sizes{MegatronField{"micro_batch_size", "micro-batch-size"},
                             MegatronField{"global_batch_size", "global-batch-size"}};
  take(section, sizes);
}

std::string MegatronSettings::in_words_of_the_file(std::string sentence) const {
  for (std::size_t at = sentence.find("--"); at != std::string::npos; at = sentence.find("--", at + 1)) {
    std::size_t end = at + 2;
    while (end < sentence.size() && (std::isalnum(static_cast<unsigned char>(sentence[end])) != 0 || sentence[end] == '-')) ++end;
    const std::string argument = sentence.substr(at + 2, end - at - 2);
    const auto found = std::ranges::find(settings_, argument, &Setting::argument);
    std::string field = found != settings_.end() ? found->path : std::string();
    for (const auto fields : {transformer_fields(), latent_attention_fields(), expert_fields(), mamba_fields(), parallel_fields(),
                              data_parallel_fields(), optimizer_fields()})
      for (const MegatronField& row : fields)
        if (field.empty() && row.argument == argument) field = row.field;
    if (!field.empty()) sentence.replace(at, end - at, field);
  }
  return sentence;
}

/// What the arguments' reader leaves out of models with experts, and the sizes of linear attention.
void MegatronSettings::biases(YamlNode& model) {
  const std::string of_linear = path_below(section_, "add_bias_linear"),
                    variant = path_below(section_, "experimental_attention_variant");
  if (model.find("moe") != nullptr && tree_.boolean(of_linear, false) && model.find("mla") == nullptr) {
    put(model, "attention_bias", name_in(attention_bias_names, AttentionBias::all), tree_.place(of_linear));
    put(*model.find("moe"), "linear_bias", true, tree_.place(of_linear));
  }
  if (tree_.text(variant, "") != "gated_delta_net") return;
  YamlNode& linear = section_of(model, "linear_attention", tree_.place(variant));
  for (const auto& [field, ours, usual] : {std::tuple{"linear_num_key_heads", "key_heads", 16},
                                           {"linear_num_value_heads", "value_heads", 32},
                                           {"linear_key_head_dim", "key_dim", 128},
                                           {"linear_value_head_dim", "value_dim", 128},
                                           {"linear_conv_kernel_dim", "conv", 4}}) {
    const std::string path = path_below(section_, field);
    put(linear, ours, tree_.integer(path, usual), tree_.place(path));
  }
}

Imported MegatronSettings::read(std::int64_t gpus) {
  if (!is_set("num-experts"))
    for (const char* size : {"expert-model-parallel-size", "expert-tensor-parallel-size"}) remove(size);
  Launch launch;
  for (const Setting& setting : settings_) {
    launch.words.push_back({"--" + setting.argument, setting.place});
    for (const std::string& value : setting.values) launch.words.push_back({value, setting.place});
  }
  Imported imported;
  try {
    imported = MegatronReader(std::move(launch), tree_.file(), gpus).all();
  } catch (const InputError& error) {
    throw InputError(error.place(), in_words_of_the_file(error.sentence()));
  }
  for (std::vector<std::string>* sentences : {&imported.ignored, &imported.notes, &imported.assumed})
    for (std::string& sentence : *sentences) sentence = in_words_of_the_file(sentence);
  YamlNode& model = section_of(imported.document, "model");
  if (!layer_types_.empty()) {
    put(model, "layer_types", list_of(layer_types_));
    model.find("layer_types")->place = tree_.place(layer_types_path_);
  }
  biases(model);
  std::ranges::move(tree_.unknown(), std::back_inserter(imported.ignored));
  imported.notes.insert(imported.notes.begin(), notes_.begin(), notes_.end());
  return imported;
}

}  // namespace tandem::scenarios
