#include <algorithm>

#include "runtime/base/nearest.h"
#include "runtime/ops/causal_conv.h"
#include "runtime/ops/hyper_sizes.h"
#include "scenarios/reading/reader.h"
#include "scenarios/reading/sections.h"
#include "scenarios/reading/yaml_mapping.h"

namespace tandem::scenarios {
namespace {

MlaSpec read_mla(const YamlNode& node) {
  const Reader mla(node, "model.mla", {"q_rank", "kv_rank", "rope_dim", "nope_dim", "v_dim"});
  const Range<std::int64_t> width{0, 1'048'576}, needed{1, 1'048'576};
  MlaSpec spec;
  spec.q_rank = mla.integer("q_rank", width, 0);
  spec.kv_rank = mla.integer("kv_rank", width, 0);
  const auto part = [&](const char* key) { return spec.enabled() ? mla.integer(key, needed) : mla.integer(key, width, 0); };
  spec.rope_dim = part("rope_dim");
  spec.nope_dim = part("nope_dim");
  spec.v_dim = part("v_dim");
  return spec;
}

IndexerSpec read_indexer(const Reader& model) {
  const Reader indexer(model.child("indexer"), "model.indexer",
                       {"heads", "head_dim", "top_k", "loss_coefficient", "sparse_loss"});
  IndexerSpec spec;
  if (!model.has("indexer")) return spec;
  spec.heads = indexer.integer("heads", {1, 65'536});
  spec.head_dim = indexer.integer("head_dim", {1, 65'536}, spec.head_dim);
  spec.top_k = indexer.integer("top_k", {1, 16'777'216}, spec.top_k);
  spec.loss_coefficient = indexer.number("loss_coefficient", {1e-6, 1e6}, spec.loss_coefficient);
  spec.sparse_loss = indexer.boolean("sparse_loss", spec.sparse_loss);
  return spec;
}

YarnSpec read_yarn(const Reader& section, const std::string& name) {
  const Reader yarn(section.child("yarn"), name, {"factor", "original_positions", "beta_fast", "beta_slow"});
  YarnSpec spec;
  if (!section.has("yarn")) return spec;
  const Range<double> turns{1e-3, 1e6};
  spec.factor = yarn.number("factor", {1, 1e6});
  spec.original_positions = yarn.integer("original_positions", {1, 1'073'741'824});
  spec.beta_fast = yarn.number("beta_fast", turns, spec.beta_fast);
  spec.beta_slow = yarn.number("beta_slow", turns, spec.beta_slow);
  return spec;
}

CompressedAttentionSpec read_compressed(const Reader& model) {
  const Reader keys(model.child("compressed_attention"), "model.compressed_attention",
                    {"q_rank", "rope_dim", "sparse_ratio", "heavy_ratio", "output_groups", "output_rank", "rotary_base", "yarn",
                     "index_heads", "index_head_dim", "index_top_k", "index_loss_coefficient"});
  CompressedAttentionSpec spec;
  if (!model.has("compressed_attention")) return spec;
  const Range<std::int64_t> width{1, 1'048'576}, positions{1, 16'777'216};
  spec.q_rank = keys.integer("q_rank", width);
  spec.rope_dim = keys.integer("rope_dim", width);
  spec.sparse_ratio = keys.integer("sparse_ratio", positions, spec.sparse_ratio);
  spec.heavy_ratio = keys.integer("heavy_ratio", positions, spec.heavy_ratio);
  spec.output_groups = keys.integer("output_groups", {1, 65'536}, spec.output_groups);
  spec.output_rank = keys.integer("output_rank", width);
  spec.rotary_base = keys.number("rotary_base", {1, 1e12}, spec.rotary_base);
  spec.yarn = read_yarn(keys, "model.compressed_attention.yarn");
  spec.index_heads = keys.integer("index_heads", {0, 65'536}, 0);
  spec.index_head_dim = keys.integer("index_head_dim", {1, 65'536}, spec.index_head_dim);
  spec.index_top_k = keys.integer("index_top_k", positions, spec.index_top_k);
  spec.index_loss_coefficient = keys.number("index_loss_coefficient", {1e-6, 1e6}, spec.index_loss_coefficient);
  return spec;
}

MambaSpec read_mamba(const Reader& model) {
  const Reader mamba(model.child("mamba"), "model.mamba", {"heads", "head_dim", "groups", "state", "conv", "chunk"});
  MambaSpec spec;
  if (!model.has("mamba")) return spec;
  const Range<std::int64_t> size{1, 65'536};
  spec.heads = mamba.integer("heads", size);
  spec.head_dim = mamba.integer("head_dim", size, spec.head_dim);
  spec.groups = mamba.integer("groups", size, spec.groups);
  spec.state = mamba.integer("state", size, spec.state);
  spec.conv = mamba.integer("conv", {1, most_taps}, spec.conv);
  spec.chunk = mamba.integer("chunk", size, spec.chunk);
  return spec;
}

LinearAttentionSpec read_linear_attention(const Reader& model) {
  const Reader linear(model.child("linear_attention"), "model.linear_attention",
                      {"key_heads", "value_heads", "key_dim", "value_dim", "conv", "chunk"});
  LinearAttentionSpec spec;
  if (!model.has("linear_attention")) return spec;
  const Range<std::int64_t> size{1, 65'536};
  spec.key_heads = linear.integer("key_heads", size);
  spec.value_heads = linear.integer("value_heads", size, spec.key_heads);
  spec.key_dim = linear.integer("key_dim", size, spec.key_dim);
  spec.value_dim = linear.integer("value_dim", size, spec.value_dim);
  spec.conv = linear.integer("conv", {1, most_taps}, spec.conv);
  spec.chunk = linear.integer("chunk", size, spec.chunk);
  return spec;
}

EncoderSpec read_encoder(const Reader& model) {
  const Reader encoder(model.child("encoder"), "model.encoder", {"layers",         "hidden",
                                                                 "heads",          "ffn",
                                                                 "patches",        "merge",
                                                                 "images",         "patch_width",
                                                                 "patch_bias",     "learned_positions",
                                                                 "class_token",    "first_norm",
                                                                 "gated",          "activation",
                                                                 "norm",           "linear_bias",
                                                                 "rotary",         "pool",
                                                                 "projector_norm", "projector",
                                                                 "projector_bias", "frozen"});
  EncoderSpec spec;
  if (!model.has("encoder")) return spec;
  const Range<std::int64_t> size{1, 1'048'576};
  spec.layers = encoder.integer("layers", {0, max_layers});
  if (spec.layers == 0) return {};
  spec.hidden = encoder.integer("hidden", size);
  spec.heads = encoder.integer("heads", size);
  spec.ffn = encoder.integer("ffn", {1, 4'194'304});
  spec.patches = encoder.integer("patches", size);
  spec.merge = encoder.integer("merge", size, spec.merge);
  spec.images = encoder.integer("images", size, spec.images);
  spec.patch_width = encoder.integer("patch_width", size);
  spec.patch_bias = encoder.boolean("patch_bias", spec.patch_bias);
  spec.learned_positions = encoder.integer("learned_positions", {0, 1'048'576}, spec.learned_positions);
  spec.class_token = encoder.boolean("class_token", spec.class_token);
  spec.first_norm = encoder.boolean("first_norm", spec.first_norm);
  spec.gated = encoder.boolean("gated", spec.gated);
  spec.activation =
      encoder.choice<MlpFunction>("activation", choices(mlp_function_names), spec.gated ? MlpFunction::silu : MlpFunction::gelu);
  spec.norm = encoder.choice<NormKind>("norm", choices(norm_names), spec.norm);
  spec.linear_bias = encoder.boolean("linear_bias", spec.linear_bias);
  spec.rotary = encoder.boolean("rotary", spec.rotary);
  spec.pool = encoder.boolean("pool", spec.pool);
  spec.projector_norm = encoder.boolean("projector_norm", spec.projector_norm);
  spec.projector = spec.pool ? std::vector<std::int64_t>{} : std::vector{spec.merged()};
  if (encoder.has("projector")) spec.projector = encoder.integers("projector", size);
  spec.projector_bias = encoder.boolean("projector_bias", spec.linear_bias);
  spec.frozen = encoder.boolean("frozen", spec.frozen);
  return spec;
}

LightningSpec read_lightning(const Reader& model) {
  const Reader lightning(model.child("lightning_attention"), "model.lightning_attention", {"heads", "head_dim", "chunk"});
  LightningSpec spec;
  if (!model.has("lightning_attention")) return spec;
  const Range<std::int64_t> size{1, 65'536};
  spec.heads = lightning.integer("heads", size);
  spec.head_dim = lightning.integer("head_dim", size, spec.head_dim);
  spec.chunk = lightning.integer("chunk", size, spec.chunk);
  return spec;
}

HyperConnectionSpec read_hyper_connections(const Reader& model) {
  const Reader hyper(model.child("hyper_connections"), "model.hyper_connections", {"streams", "iterations"});
  HyperConnectionSpec spec;
  if (!model.has("hyper_connections")) return spec;
  spec.streams = hyper.integer("streams", {1, HyperSizes::most_streams});
  spec.iterations = hyper.integer("iterations", {1, HyperSizes::most_iterations}, spec.iterations);
  return spec;
}

ResidualSpec read_residual(const Reader& model) {
  const Reader residual(model.child("residual"), "model.residual",
                        {"full_attention_alpha", "full_attention_beta", "linear_attention_alpha", "linear_attention_beta",
                         "mlp_alpha", "mlp_beta"});
  const auto factors = [&](const char* alpha, const char* beta) {
    const Range<double> range{1e-6, 1e6};
    return ResidualFactors{residual.number(alpha, range, 1.0), residual.number(beta, range, 1.0)};
  };
  return {.full_attention = factors("full_attention_alpha", "full_attention_beta"),
          .linear_attention = factors("linear_attention_alpha", "linear_attention_beta"),
          .mlp = factors("mlp_alpha", "mlp_beta")};
}

/// A list of words, or letters as Megatron-Core's hybrid models have them.
std::vector<LayerType> read_layer_types(const Reader& model) {
  std::vector<LayerType> types;
  const YamlNode& node = model.child("layer_types");
  if (node.kind == YamlNode::Kind::sequence) {
    for (const YamlNode& item : node.items)
      types.push_back(model.choice_of<LayerType>(item, "layer_types", choices(layer_type_names)));
  } else if (model.has("layer_types")) {
    for (const char letter : model.text("layer_types")) {
      const auto* const found = std::ranges::find(hybrid_letters, std::string_view(&letter, 1), &Named<LayerType>::name);
      if (found == hybrid_letters.end())
        model.fail("layer_types", "model.layer_types has the letter " + excerpt(std::string(1, letter)) +
                                      ", expected M, *, - and E, or a list of words such as [sliding_attention, full_attention]");
      types.push_back(found->value);
    }
  }
  return types;
}

}  // namespace

ModelSpec read_model(const YamlNode& node) {
  const Reader model(node, "model",
                     {"name",
                      "layers",
                      "hidden",
                      "heads",
                      "kv_heads",
                      "head_dim",
                      "ffn",
                      "gated",
                      "vocab",
                      "norm",
                      "tied_embeddings",
                      "rotary",
                      "max_positions",
                      "rotary_base",
                      "causal",
                      "linear_bias",
                      "attention_bias",
                      "logit_softcap",
                      "activation",
                      "activation_limit",
                      "activation_offset",
                      "attention_gate",
                      "attention_scale",
                      "embedding_factor",
                      "logit_factor",
                      "norm_placement",
                      "qk_norm",
                      "attention_sinks",
                      "attention_softcap",
                      "rotary_share",
                      "rotary_full_attention",
                      "rope_scaling",
                      "sliding_rotary_base",
                      "moe",
                      "mla",
                      "indexer",
                      "compressed_attention",
                      "mtp_depth",
                      "layer_types",
                      "window",
                      "attention_chunk",
                      "mamba",
                      "linear_attention",
                      "lightning_attention",
                      "residual",
                      "hyper_connections",
                      "encoder"});
  ModelSpec spec;
  spec.name = model.text("name", "inline");
  spec.layers = model.integer("layers", {1, max_layers});
  spec.hidden = model.integer("hidden", {1, 1'048'576});
  spec.heads = model.integer("heads", {1, 65'536});
  spec.kv_heads = model.integer("kv_heads", {1, 65'536}, spec.heads);
  spec.head_dim = model.integer("head_dim", {1, 65'536}, spec.hidden % spec.heads == 0 ? spec.hidden / spec.heads : 0);
  spec.ffn = model.integer("ffn", {1, 4'194'304});
  spec.gated = model.boolean("gated", true);
  spec.activation =
      model.choice<MlpFunction>("activation", choices(mlp_function_names), spec.gated ? MlpFunction::silu : MlpFunction::gelu);
  spec.activation_limit = model.number("activation_limit", {0, 1e6}, 0.0);
  spec.activation_offset = model.number("activation_offset", {-1e6, 1e6}, 0.0);
  spec.vocab = model.integer("vocab", {2, 16'777'216});
  spec.norm = model.choice<NormKind>("norm", choices(norm_names), NormKind::rms);
  spec.norm_placement = model.choice<NormPlacement>("norm_placement", choices(norm_placement_names), NormPlacement::pre);
  spec.tied_embeddings = model.boolean("tied_embeddings", false);
  spec.rotary = model.boolean("rotary", true);
  spec.rotary_base = model.number("rotary_base", {1, 1e12}, spec.rotary_base);
  spec.sliding_rotary_base = model.number("sliding_rotary_base", {0, 1e12}, 0.0);
  spec.rotary_share = model.number("rotary_share", {0.001, 1}, 1.0);
  spec.rotary_full_attention = model.boolean("rotary_full_attention", true);
  const Range<std::int64_t> positions{0, 16'777'216};
  spec.max_positions = spec.rotary ? model.integer("max_positions", positions, 0) : model.integer("max_positions", positions);
  spec.causal = model.boolean("causal", true);
  spec.linear_bias = model.boolean("linear_bias", false);
  spec.attention_bias = model.choice<AttentionBias>("attention_bias", choices(attention_bias_names), AttentionBias::none);
  spec.qk_norm = model.choice<QkNorm>("qk_norm", choices(qk_norm_names), QkNorm::none);
  spec.rope_scaling = model.choice<RopeScaling>("rope_scaling", choices(rope_scaling_names), RopeScaling::none);
  spec.attention_sinks = model.boolean("attention_sinks", false);
  spec.attention_softcap = model.number("attention_softcap", {0, 1e6}, 0.0);
  spec.logit_softcap = model.number("logit_softcap", {0, 1e6}, 0.0);
  spec.attention_gate = model.boolean("attention_gate", false);
  spec.attention_scale = model.number("attention_scale", {0, 1e6}, 0.0);
  spec.embedding_factor = model.number("embedding_factor", {1e-6, 1e6}, 1.0);
  spec.logit_factor = model.number("logit_factor", {1e-6, 1e6}, 1.0);
  spec.mtp_depth = model.integer("mtp_depth", {0, 64}, 0);
  spec.layer_types = read_layer_types(model);
  spec.window = model.integer("window", {0, 16'777'216}, 0);
  spec.attention_chunk = model.integer("attention_chunk", {0, 16'777'216}, 0);
  spec.moe = read_moe(model.child("moe"), spec.ffn);
  spec.mla = read_mla(model.child("mla"));
  spec.indexer = read_indexer(model);
  spec.compressed = read_compressed(model);
  spec.mamba = read_mamba(model);
  spec.linear_attention = read_linear_attention(model);
  spec.encoder = read_encoder(model);
  spec.lightning = read_lightning(model);
  spec.residual = read_residual(model);
  spec.hyper = read_hyper_connections(model);
  if (spec.mla.enabled()) spec.head_dim = spec.mla.qk_dim();
  return spec;
}

namespace {

YamlNode words_of(const std::vector<LayerType>& types) {
  std::vector<std::string> words;
  for (const LayerType& type : types) words.emplace_back(name_in(layer_type_names, type));
  return list_of(words);
}

YamlNode mamba_section(const MambaSpec& mamba) {
  YamlNode node = make_node(YamlNode::Kind::mapping, {});
  put(node, "heads", mamba.heads);
  put(node, "head_dim", mamba.head_dim);
  put(node, "groups", mamba.groups);
  put(node, "state", mamba.state);
  put(node, "conv", mamba.conv);
  put(node, "chunk", mamba.chunk);
  return node;
}

YamlNode linear_attention_section(const LinearAttentionSpec& linear) {
  YamlNode node = make_node(YamlNode::Kind::mapping, {});
  put(node, "key_heads", linear.key_heads);
  put(node, "value_heads", linear.value_heads);
  put(node, "key_dim", linear.key_dim);
  put(node, "value_dim", linear.value_dim);
  put(node, "conv", linear.conv);
  put(node, "chunk", linear.chunk);
  return node;
}

YamlNode lightning_section(const LightningSpec& lightning) {
  YamlNode node = make_node(YamlNode::Kind::mapping, {});
  put(node, "heads", lightning.heads);
  put(node, "head_dim", lightning.head_dim);
  put(node, "chunk", lightning.chunk);
  return node;
}

YamlNode residual_section(const ResidualSpec& residual) {
  YamlNode node = make_node(YamlNode::Kind::mapping, {});
  put(node, "full_attention_alpha", residual.full_attention.alpha);
  put(node, "full_attention_beta", residual.full_attention.beta);
  put(node, "linear_attention_alpha", residual.linear_attention.alpha);
  put(node, "linear_attention_beta", residual.linear_attention.beta);
  put(node, "mlp_alpha", residual.mlp.alpha);
  put(node, "mlp_beta", residual.mlp.beta);
  return node;
}

YamlNode hyper_section(const HyperConnectionSpec& hyper) {
  YamlNode node = make_node(YamlNode::Kind::mapping, {});
  put(node, "streams", hyper.streams);
  put(node, "iterations", hyper.iterations);
  return node;
}

YamlNode mla_section(const MlaSpec& mla) {
  YamlNode node = make_node(YamlNode::Kind::mapping, {});
  put(node, "q_rank", mla.q_rank);
  put(node, "kv_rank", mla.kv_rank);
  put(node, "rope_dim", mla.rope_dim);
  put(node, "nope_dim", mla.nope_dim);
  put(node, "v_dim", mla.v_dim);
  return node;
}

YamlNode indexer_section(const IndexerSpec& indexer) {
  YamlNode node = make_node(YamlNode::Kind::mapping, {});
  put(node, "heads", indexer.heads);
  put(node, "head_dim", indexer.head_dim);
  put(node, "top_k", indexer.top_k);
  put(node, "loss_coefficient", indexer.loss_coefficient);
  put(node, "sparse_loss", indexer.sparse_loss);
  return node;
}

YamlNode yarn_section(const YarnSpec& yarn) {
  YamlNode node = make_node(YamlNode::Kind::mapping, {});
  put(node, "factor", yarn.factor);
  put(node, "original_positions", yarn.original_positions);
  put(node, "beta_fast", yarn.beta_fast);
  put(node, "beta_slow", yarn.beta_slow);
  return node;
}

YamlNode compressed_section(const CompressedAttentionSpec& spec) {
  YamlNode node = make_node(YamlNode::Kind::mapping, {});
  put(node, "q_rank", spec.q_rank);
  put(node, "rope_dim", spec.rope_dim);
  put(node, "sparse_ratio", spec.sparse_ratio);
  put(node, "heavy_ratio", spec.heavy_ratio);
  put(node, "output_groups", spec.output_groups);
  put(node, "output_rank", spec.output_rank);
  put(node, "rotary_base", spec.rotary_base);
  if (spec.yarn.stretches()) put(node, "yarn", yarn_section(spec.yarn));
  put(node, "index_heads", spec.index_heads);
  put(node, "index_head_dim", spec.index_head_dim);
  put(node, "index_top_k", spec.index_top_k);
  put(node, "index_loss_coefficient", spec.index_loss_coefficient);
  return node;
}

YamlNode encoder_section(const EncoderSpec& encoder) {
  YamlNode node = make_node(YamlNode::Kind::mapping, {});
  put(node, "layers", encoder.layers);
  put(node, "hidden", encoder.hidden);
  put(node, "heads", encoder.heads);
  put(node, "ffn", encoder.ffn);
  put(node, "patches", encoder.patches);
  put(node, "merge", encoder.merge);
  put(node, "images", encoder.images);
  put(node, "patch_width", encoder.patch_width);
  put(node, "patch_bias", encoder.patch_bias);
  put(node, "learned_positions", encoder.learned_positions);
  put(node, "class_token", encoder.class_token);
  put(node, "first_norm", encoder.first_norm);
  put(node, "gated", encoder.gated);
  put(node, "activation", name_in(mlp_function_names, encoder.activation));
  put(node, "norm", name_in(norm_names, encoder.norm));
  put(node, "linear_bias", encoder.linear_bias);
  put(node, "rotary", encoder.rotary);
  put(node, "pool", encoder.pool);
  put(node, "projector_norm", encoder.projector_norm);
  std::vector<std::string> widths;
  for (const std::int64_t width : encoder.projector) widths.push_back(std::to_string(width));
  put(node, "projector", list_of(widths));
  put(node, "projector_bias", encoder.projector_bias);
  put(node, "frozen", encoder.frozen);
  return node;
}

}  // namespace

YamlNode write_model(const ModelSpec& model) {
  YamlNode node = make_node(YamlNode::Kind::mapping, {});
  put(node, "name", model.name);
  put(node, "layers", model.layers);
  put(node, "hidden", model.hidden);
  put(node, "heads", model.heads);
  put(node, "kv_heads", model.kv_heads);
  if (!model.mla.enabled()) put(node, "head_dim", model.head_dim);
  put(node, "ffn", model.ffn);
  put(node, "gated", model.gated);
  put(node, "activation", name_in(mlp_function_names, model.activation));
  if (model.activation_limit > 0) put(node, "activation_limit", model.activation_limit);
  if (model.activation_offset != 0) put(node, "activation_offset", model.activation_offset);
  put(node, "vocab", model.vocab);
  put(node, "norm", name_in(norm_names, model.norm));
  put(node, "norm_placement", name_in(norm_placement_names, model.norm_placement));
  put(node, "tied_embeddings", model.tied_embeddings);
  put(node, "rotary", model.rotary);
  if (model.rotary) put(node, "rotary_base", model.rotary_base);
  if (model.rotary) put(node, "rotary_share", model.rotary_share);
  if (model.rotary) put(node, "rotary_full_attention", model.rotary_full_attention);
  if (model.sliding_rotary_base > 0) put(node, "sliding_rotary_base", model.sliding_rotary_base);
  if (model.rope_scaling != RopeScaling::none) put(node, "rope_scaling", name_in(rope_scaling_names, model.rope_scaling));
  if (!model.rotary) put(node, "max_positions", model.max_positions);
  put(node, "causal", model.causal);
  put(node, "linear_bias", model.linear_bias);
  if (model.attention_bias != AttentionBias::none)
    put(node, "attention_bias", name_in(attention_bias_names, model.attention_bias));
  put(node, "qk_norm", name_in(qk_norm_names, model.qk_norm));
  put(node, "attention_sinks", model.attention_sinks);
  put(node, "attention_softcap", model.attention_softcap);
  if (model.logit_softcap > 0) put(node, "logit_softcap", model.logit_softcap);
  if (model.attention_gate) put(node, "attention_gate", true);
  if (model.attention_scale > 0) put(node, "attention_scale", model.attention_scale);
  if (model.embedding_factor != 1) put(node, "embedding_factor", model.embedding_factor);
  if (model.logit_factor != 1) put(node, "logit_factor", model.logit_factor);
  if (model.mla.enabled()) put(node, "mla", mla_section(model.mla));
  if (model.indexer.enabled()) put(node, "indexer", indexer_section(model.indexer));
  if (model.compressed.enabled()) put(node, "compressed_attention", compressed_section(model.compressed));
  if (model.moe.experts > 0) put(node, "moe", write_moe(model.moe));
  if (model.mamba.enabled()) put(node, "mamba", mamba_section(model.mamba));
  if (model.linear_attention.enabled()) put(node, "linear_attention", linear_attention_section(model.linear_attention));
  if (model.encoder.enabled()) put(node, "encoder", encoder_section(model.encoder));
  if (model.lightning.enabled()) put(node, "lightning_attention", lightning_section(model.lightning));
  if (model.residual.scale()) put(node, "residual", residual_section(model.residual));
  if (model.hyper.enabled()) put(node, "hyper_connections", hyper_section(model.hyper));
  put(node, "mtp_depth", model.mtp_depth);
  if (!model.layer_types.empty()) put(node, "layer_types", words_of(model.layer_types));
  if (model.window > 0) put(node, "window", model.window);
  if (model.attention_chunk > 0) put(node, "attention_chunk", model.attention_chunk);
  return node;
}

}  // namespace tandem::scenarios
