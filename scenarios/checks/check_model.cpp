#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/nearest.h"
#include "scenarios/checks/rules.h"

namespace tandem::scenarios {
namespace {

constexpr Rule heads_have_a_width{.holds = [](const Scenario& s) { return s.model.head_dim > 0; },
                                  .objection = [](const Scenario& s) -> Objection {
                                    return {{"model.heads", "model.hidden"},
                                            named("heads", s.model.heads) + " does not divide " +
                                                named("hidden", s.model.hidden) + ", expected that or model.head_dim"};
                                  }};

// Multi-head latent attention.

std::optional<Objection> find_part_without_latent(const Scenario& s) {
  const MlaSpec& mla = s.model.mla;
  if (mla.enabled()) return {};
  const std::pair<const char*, std::int64_t> parts[] = {{"model.mla.q_rank", mla.q_rank},
                                                        {"model.mla.rope_dim", mla.rope_dim},
                                                        {"model.mla.nope_dim", mla.nope_dim},
                                                        {"model.mla.v_dim", mla.v_dim}};
  for (const auto& [field, width] : parts)
    if (width > 0) return Objection{{field}, std::string(field) + " without a kv_rank, expected that, too"};
  return {};
}

constexpr Rule latent_rotates_pairs{
    .holds = [](const Scenario& s) { return s.model.mla.rope_dim % 2 == 0; },
    .objection = [](const Scenario& s) -> Objection {
      const std::int64_t width = s.model.mla.rope_dim;
      return {{"model.mla.rope_dim"},
              named("rope_dim", width) +
                  " is odd, and rotary positions turn pairs; nearest even ones: " + joined(nearest_multiples(2, width))};
    }};

constexpr Rule latent_attention_is_rotary{
    .holds = [](const Scenario& s) { return !s.model.mla.enabled() || s.model.rotary; },
    .objection = [](const Scenario&) -> Objection {
      return {{"model.rotary", "model.mla"}, "rotary false with latent attention, expected true: it has no learned positions"};
    }};

constexpr Rule latent_heads_have_keys{
    .holds = [](const Scenario& s) { return !s.model.mla.enabled() || s.model.kv_heads == s.model.heads; },
    .objection = [](const Scenario& s) -> Objection {
      return {{"model.kv_heads", "model.heads", "model.mla"},
              named("kv_heads", s.model.kv_heads) + " with latent attention, expected heads, " + std::to_string(s.model.heads) +
                  ": every head has a key of its own"};
    }};

// Heads that share a key, beside compressed ones.

/// What is not lowered beside them.
std::optional<Objection> find_what_excludes_compressed_attention(const Scenario& s) {
  const ModelSpec& m = s.model;
  const std::string section = "model.compressed_attention";
  const std::pair<const char*, bool> others[] = {{"model.mla", m.mla.enabled()},
                                                 {"model.qk_norm", m.qk_norm != QkNorm::none},
                                                 {"model.attention_gate", m.attention_gate},
                                                 {"model.linear_bias", m.linear_bias},
                                                 {"model.attention_bias", m.attention_bias != AttentionBias::none},
                                                 {"model.attention_softcap", m.attention_softcap > 0},
                                                 {"training.attention", s.training.attention == AttentionKernel::unfused},
                                                 {"training.fp8_attention", s.training.fp8_attention},
                                                 {"training.documents", s.training.documents.any()},
                                                 {"training.attention_dropout", s.training.attention_dropout > 0}};
  for (const auto& [field, is_set] : others)
    if (is_set)
      return Objection{{field, section}, std::string(field) + " is not lowered with " + section + ", expected it left out"};
  if (m.layer_types.empty() || m.has_mixer(Mixer::full_attention) || m.has_mixer(Mixer::chunked_attention) || m.window == 0)
    return Objection{{"model.layer_types", "model.window", section},
                     section +
                         " with layers of full or chunked attention, or without a window, is not lowered; expected "
                         "sliding_attention, compressed_sparse_attention and heavily_compressed_attention"};
  if (m.kv_heads != 1)
    return Objection{{"model.kv_heads", section},
                     named("kv_heads", m.kv_heads) + " with " + section + ", whose heads share one key; expected 1"};
  if (!m.rotary || !m.causal)
    return Objection{{m.rotary ? "model.causal" : "model.rotary", section},
                     section + " without rotary positions, or not causal, is not lowered; expected both true"};
  return {};
}

std::optional<Objection> find_flaw_of_compressed_attention(const Scenario& s) {
  const ModelSpec& m = s.model;
  const CompressedAttentionSpec& c = m.compressed;
  const bool sparse = m.has_mixer(Mixer::compressed_sparse_attention), heavy = m.has_mixer(Mixer::heavily_compressed_attention);
  const std::string section = "model.compressed_attention";
  if (!c.enabled() && (sparse || heavy))
    return Objection{{section, "model.layer_types"}, "layers with compressed keys without " + section + ", expected that, too"};
  if (!c.enabled()) return {};
  if (auto objection = find_what_excludes_compressed_attention(s)) return objection;
  const std::int64_t narrowest = sparse ? std::min(m.head_dim, c.index_head_dim) : m.head_dim;
  if (c.rope_dim % 2 != 0 || c.rope_dim > narrowest)
    return Objection{
        {section + ".rope_dim", "model.head_dim"},
        named("rope_dim", c.rope_dim) + " of heads of " + std::to_string(narrowest) + ", expected an even number up to that"};
  if (m.heads % c.output_groups != 0)
    return Objection{{section + ".output_groups", "model.heads"},
                     named("output_groups", c.output_groups) + " does not divide " + named("heads", m.heads) +
                         "; nearest that do: " + joined(nearest_divisors(m.heads, c.output_groups))};
  if (sparse && c.index_heads == 0)
    return Objection{{section + ".index_heads", "model.layer_types"},
                     "compressed_sparse_attention without compressed_attention.index_heads, expected an indexer"};
  for (const Mixer mixer : {Mixer::compressed_sparse_attention, Mixer::heavily_compressed_attention})
    if (m.has_mixer(mixer) && s.training.sequence % c.ratio_of(mixer) != 0)
      return Objection{
          {"training.sequence", section},
          named("sequence", s.training.sequence) + " is no multiple of the " + std::to_string(c.ratio_of(mixer)) +
              " positions of a compressed key; nearest: " + joined(nearest_multiples(c.ratio_of(mixer), s.training.sequence))};
  return {};
}

// Keys that an indexer chooses.

std::optional<Objection> find_flaw_of_indexer(const Scenario& s) {
  const ModelSpec& m = s.model;
  if (!m.indexer.enabled()) return {};
  if (!m.mla.enabled())
    return Objection{{"model.indexer", "model.mla"},
                     "model.indexer without model.mla, expected latent attention, whose keys it chooses"};
  if (m.indexer.head_dim < m.mla.rope_dim)
    return Objection{{"model.indexer.head_dim", "model.mla.rope_dim"},
                     "model.indexer.head_dim " + std::to_string(m.indexer.head_dim) + " is less than " +
                         named("rope_dim", m.mla.rope_dim) + ", which of it is rotated; expected at least that"};
  if (!m.causal)
    return Objection{{"model.causal", "model.indexer"},
                     "causal false with model.indexer, which chooses among earlier positions; expected causal true"};
  if (m.has_mixer(Mixer::sliding_attention) || m.has_mixer(Mixer::chunked_attention))
    return Objection{{"model.layer_types", "model.indexer"},
                     "sliding or chunked attention with model.indexer, which chooses among all earlier positions; expected "
                     "full_attention"};
  if (m.attention_softcap > 0)
    return Objection{{"model.attention_softcap", "model.indexer"},
                     "model.attention_softcap is not lowered with model.indexer, expected it left out"};
  return {};
}

constexpr Rule biased_attention_has_keys{
    .holds = [](const Scenario& s) { return s.model.attention_bias == AttentionBias::none || !s.model.mla.enabled(); },
    .objection = [](const Scenario&) -> Objection {
      return {{"model.attention_bias", "model.mla"}, "model.attention_bias is not lowered with model.mla, expected none"};
    }};

constexpr Rule biased_layers_are_dense{
    .holds = [](const Scenario& s) { return !s.model.linear_bias || (s.model.moe.experts == 0 && !s.model.mla.enabled()); },
    .objection = [](const Scenario& s) -> Objection {
      const std::string field = s.model.mla.enabled() ? "model.mla" : "model.moe.experts";
      return {{"model.linear_bias", field}, "model.linear_bias is not lowered with " + field + ", expected false"};
    }};

// Grouped and rotated heads.

constexpr Rule kv_heads_divide_heads{
    .holds = [](const Scenario& s) { return s.model.heads % s.model.kv_heads == 0; },
    .objection = [](const Scenario& s) -> Objection {
      return {{"model.kv_heads", "model.heads"},
              named("kv_heads", s.model.kv_heads) + " does not divide " + named("heads", s.model.heads) +
                  "; nearest that do: " + joined(nearest_divisors(s.model.heads, s.model.kv_heads))};
    }};

constexpr Rule rotated_heads_are_even{
    .holds = [](const Scenario& s) { return !s.model.rotary || s.model.mla.enabled() || s.model.rotated_width() % 2 == 0; },
    .objection = [](const Scenario& s) -> Objection {
      return {{"model.rotary_share", "model.head_dim", "model.heads"},
              s.model.rotary_share < 1
                  ? "rotary_share of " + named("head_dim", s.model.head_dim) + " is " + std::to_string(s.model.rotated_width()) +
                        " elements, and rotary positions turn pairs; expected an even number"
                  : named("head_dim", s.model.head_dim) + " is odd, and rotary positions turn pairs; nearest even ones: " +
                        joined(nearest_multiples(2, s.model.head_dim))};
    }};

// Layers that differ.

constexpr Rule layer_types_are_of_layers{
    .holds = [](const Scenario& s) { return static_cast<std::int64_t>(s.model.layer_types.size()) <= s.model.layers; },
    .objection = [](const Scenario& s) -> Objection {
      return {{"model.layer_types", "model.layers"},
              "layer_types lists " + std::to_string(s.model.layer_types.size()) + " layers of " + std::to_string(s.model.layers) +
                  ", expected one for each, or fewer that repeat"};
    }};

/// What a layer type needs to be told.
struct TypeNeeds {
  Mixer mixer;
  std::string_view word, field;
  bool (*told)(const ModelSpec&);
};
constexpr TypeNeeds needs_of_types[] = {
    {Mixer::sliding_attention, "sliding_attention", "window", [](const ModelSpec& m) { return m.window > 0; }},
    {Mixer::chunked_attention, "chunked_attention", "attention_chunk", [](const ModelSpec& m) { return m.attention_chunk > 0; }},
    {Mixer::linear_attention, "linear_attention", "linear_attention",
     [](const ModelSpec& m) { return m.linear_attention.enabled(); }},
    {Mixer::mamba, "mamba", "mamba", [](const ModelSpec& m) { return m.mamba.enabled(); }},
    {Mixer::lightning_attention, "lightning_attention", "lightning_attention",
     [](const ModelSpec& m) { return m.lightning.enabled(); }},
};

std::optional<Objection> find_untold_type(const Scenario& s) {
  for (const TypeNeeds& type : needs_of_types) {
    const std::string field = "model." + std::string(type.field);
    const bool beside_compressed_keys = type.mixer == Mixer::sliding_attention && s.model.compressed.enabled();
    const bool has = s.model.has_mixer(type.mixer) || beside_compressed_keys, told = type.told(s.model);
    if (has && !told)
      return Objection{{field, "model.layer_types"},
                       "layers of type " + std::string(type.word) + " without " + field + ", expected that, too"};
    if (told && !has)
      return Objection{
          {field, "model.layer_types"},
          field + " without layers of type " + std::string(type.word) + " in model.layer_types, expected those, too"};
  }
  return {};
}

std::optional<Objection> find_experts_out_of_place(const Scenario& s) {
  const ModelSpec& m = s.model;
  const bool says_where = std::ranges::any_of(m.layer_types, [](const LayerType& type) { return type.feed == Feed::experts; });
  if (says_where && m.moe.experts == 0)
    return Objection{{"model.layer_types", "model.moe"}, "layers of type moe without model.moe.experts, expected those, too"};
  const bool open = m.layer_types.empty() || std::ranges::any_of(m.layer_types, [](const LayerType& type) { return !type.feed; });
  if (m.moe.experts > 0 && !says_where && !open)
    return Objection{{"model.moe", "model.layer_types"},
                     "model.moe.experts, but no layer of model.layer_types is of type moe, expected one"};
  if (!open && (m.moe.first_dense_layers > 0 || m.moe.every > 1))
    return Objection{{"model.moe.first_dense_layers", "model.moe.every", "model.layer_types"},
                     "first_dense_layers or every where model.layer_types says which layers have experts, expected only one of "
                     "the two"};
  return {};
}

constexpr Rule windows_look_back{
    .holds =
        [](const Scenario& s) {
          return s.model.causal || !(s.model.has_mixer(Mixer::sliding_attention) || s.model.has_mixer(Mixer::chunked_attention));
        },
    .objection = [](const Scenario&) -> Objection {
      return {{"model.causal", "model.layer_types"},
              "causal false with sliding or chunked attention, which look back alone; expected causal true"};
    }};

constexpr Rule states_pass_forward{
    .holds =
        [](const Scenario& s) {
          const ModelSpec& m = s.model;
          return m.causal ||
                 !(m.has_mixer(Mixer::mamba) || m.has_mixer(Mixer::linear_attention) || m.has_mixer(Mixer::lightning_attention));
        },
    .objection = [](const Scenario& s) -> Objection {
      const std::string other = s.model.has_mixer(Mixer::linear_attention) ? "linear_attention" : "lightning_attention";
      const std::string type = s.model.has_mixer(Mixer::mamba) ? "mamba" : other;
      return {{"model.causal", "model.layer_types"},
              "causal false with layers of type " + type + ", whose states pass forward alone; expected causal true"};
    }};

constexpr Rule key_heads_divide_value_heads{
    .holds =
        [](const Scenario& s) {
          const LinearAttentionSpec& linear = s.model.linear_attention;
          return !linear.enabled() || linear.value_heads % linear.key_heads == 0;
        },
    .objection = [](const Scenario& s) -> Objection {
      const LinearAttentionSpec& linear = s.model.linear_attention;
      return {{"model.linear_attention.key_heads", "model.linear_attention.value_heads"},
              named("key_heads", linear.key_heads) + " does not divide " + named("value_heads", linear.value_heads) +
                  " of linear attention; nearest that do: " + joined(nearest_divisors(linear.value_heads, linear.key_heads))};
    }};

constexpr Rule mamba_groups_divide_heads{
    .holds = [](const Scenario& s) { return s.model.mamba.heads % s.model.mamba.groups == 0; },
    .objection = [](const Scenario& s) -> Objection {
      const MambaSpec& mamba = s.model.mamba;
      return {{"model.mamba.groups", "model.mamba.heads"},
              named("groups", mamba.groups) + " does not divide " + named("heads", mamba.heads) +
                  " of Mamba; nearest that do: " + joined(nearest_divisors(mamba.heads, mamba.groups))};
    }};

// What attention and the MLP may have beside.

constexpr Rule all_heads_are_normed_together{
    .sizes = Sizes::split,
    .holds =
        [](const Scenario& s) {
          return s.model.qk_norm != QkNorm::all || s.model.norm == NormKind::rms || s.parallelism.tp == 1;
        },
    .objection = [](const Scenario& s) -> Objection {
      return {{"model.qk_norm", "model.norm", "parallelism.tp"},
              "qk_norm all by LayerNorm with " + named(Axis::tp, s.parallelism.tp) +
                  ", whose ranks have some heads each, is not lowered; expected norm rms, " + named(Axis::tp, 1) +
                  ", or qk_norm head"};
    }};

/// What only attention with keys of its own has.
std::optional<Objection> find_option_of_other_attention(const Scenario& s) {
  const ModelSpec& m = s.model;
  if (!m.mla.enabled()) return {};
  const std::pair<const char*, bool> options[] = {{"model.qk_norm", m.qk_norm != QkNorm::none},
                                                  {"model.attention_gate", m.attention_gate},
                                                  {"model.attention_scale", m.attention_scale > 0},
                                                  {"model.attention_sinks", m.attention_sinks},
                                                  {"model.rope_scaling", m.rope_scaling != RopeScaling::none},
                                                  {"model.rotary_share", m.rotary_share < 1},
                                                  {"model.sliding_rotary_base", m.sliding_rotary_base > 0},
                                                  {"model.rotary_full_attention", !m.rotary_full_attention}};
  for (const auto& [field, is_set] : options)
    if (is_set)
      return Objection{{field, "model.mla"}, std::string(field) + " is not lowered with latent attention, expected it left out"};
  return {};
}

/// Whether an MLP's function is one of gates, or of an MLP without.
bool has_activation(bool gated, MlpFunction function) {
  if (function == MlpFunction::gelu) return true;
  return (function == MlpFunction::squared_relu) != gated;
}

constexpr Rule gated_attention_has_no_bias{
    .holds = [](const Scenario& s) { return !s.model.attention_gate || s.model.biases_of_attention() == AttentionBias::none; },
    .objection = [](const Scenario& s) -> Objection {
      const std::string field = s.model.linear_bias ? "model.linear_bias" : "model.attention_bias";
      return {
          {"model.attention_gate", field},
          "model.attention_gate with " + field + ", whose gate would have a bias, too, is not lowered; expected one of the two"};
    }};

constexpr Rule limits_are_of_gates{
    .holds = [](const Scenario& s) { return s.model.gated || (s.model.activation_limit == 0 && s.model.activation_offset == 0); },
    .objection = [](const Scenario& s) -> Objection {
      const std::string field = s.model.activation_limit > 0 ? "activation_limit" : "activation_offset";
      return {{"model." + field, "model.gated"}, field + " without gates is not lowered; expected gated true, or 0"};
    }};

constexpr Rule gates_are_not_squared{
    .holds = [](const Scenario& s) { return has_activation(s.model.gated, s.model.activation); },
    .objection = [](const Scenario& s) -> Objection {
      return {{"model.activation", "model.gated"},
              "activation " + std::string(name_in(mlp_function_names, s.model.activation)) +
                  (s.model.gated ? " of a gated MLP is not lowered; expected silu, gelu or quick-gelu"
                                 : " without gates is not lowered; expected gelu or squared-relu")};
    }};

// Several residual streams.

std::optional<Objection> find_what_excludes_streams(const Scenario& s) {
  const ModelSpec& m = s.model;
  if (!m.hyper.enabled()) return {};
  const std::pair<const char*, bool> others[] = {{"model.residual", m.residual.scale()},
                                                 {"model.norm_placement", m.norm_placement == NormPlacement::residual},
                                                 {"training.hidden_dropout", s.training.hidden_dropout > 0}};
  for (const auto& [field, is_set] : others)
    if (is_set)
      return Objection{{field, "model.hyper_connections"},
                       std::string(field) + " is not lowered with model.hyper_connections, expected it left out"};
  return {};
}

// An encoder before the model.

std::optional<Objection> find_flaw_of_encoder(const Scenario& s) {
  const EncoderSpec& e = s.model.encoder;
  if (!e.enabled()) return {};
  if (e.hidden % e.heads != 0)
    return Objection{{"model.encoder.heads", "model.encoder.hidden"},
                     "encoder." + named("heads", e.heads) + " does not divide its " + named("hidden", e.hidden) +
                         "; nearest that do: " + joined(nearest_divisors(e.hidden, e.heads))};
  if (e.rotary && e.hidden / e.heads % 2 != 0)
    return Objection{{"model.encoder.rotary", "model.encoder.heads"},
                     "encoder.rotary with heads of odd width " + std::to_string(e.hidden / e.heads) +
                         ", and rotary positions turn pairs; expected false, or other heads"};
  if (e.patches % e.merge != 0)
    return Objection{{"model.encoder.merge", "model.encoder.patches"},
                     "encoder." + named("merge", e.merge) + " does not divide " + named("patches", e.patches) +
                         "; nearest that do: " + joined(nearest_divisors(e.patches, e.merge))};
  if (e.learned_positions > 0 && e.learned_positions < e.rows())
    return Objection{{"model.encoder.learned_positions", "model.encoder.patches"},
                     "encoder." + named("learned_positions", e.learned_positions) + " are fewer than the " +
                         std::to_string(e.rows()) + " rows of an image, expected " + std::to_string(e.rows()) + " at least"};
  if (e.tokens() >= s.training.sequence)
    return Objection{{"model.encoder.images", "model.encoder.patches", "training.sequence"},
                     "images of " + std::to_string(e.tokens()) + " tokens leave none of " +
                         named("sequence", s.training.sequence) +
                         " to text, expected fewer images or patches, or a longer sequence"};
  if (!has_activation(e.gated, e.activation))
    return Objection{{"model.encoder.activation", "model.encoder.gated"},
                     "encoder.activation " + std::string(name_in(mlp_function_names, e.activation)) +
                         (e.gated ? " of a gated MLP is not lowered; expected silu, gelu or quick-gelu"
                                  : " without gates is not lowered; expected gelu or squared-relu")};
  if (s.training.documents.any())
    return Objection{
        {"training.documents", "model.encoder"},
        "training.documents with model.encoder, whose images stand at the front of whole sequences; expected one of the two"};
  return {};
}

constexpr Rule rules_of_model[] = {
    heads_have_a_width,
    biased_layers_are_dense,
    biased_attention_has_keys,
    rule_of<find_part_without_latent>,
    latent_rotates_pairs,
    latent_attention_is_rotary,
    latent_heads_have_keys,
    rule_of<find_flaw_of_indexer>,
    rule_of<find_flaw_of_compressed_attention>,
    kv_heads_divide_heads,
    rotated_heads_are_even,
    layer_types_are_of_layers,
    rule_of<find_untold_type>,
    rule_of<find_experts_out_of_place>,
    windows_look_back,
    states_pass_forward,
    mamba_groups_divide_heads,
    key_heads_divide_value_heads,
    all_heads_are_normed_together,
    rule_of<find_option_of_other_attention>,
    gated_attention_has_no_bias,
    limits_are_of_gates,
    gates_are_not_squared,
    rule_of<find_what_excludes_streams>,
    rule_of<find_flaw_of_encoder>,
};

}  // namespace

std::span<const Rule> model_rules() { return rules_of_model; }

}  // namespace tandem::scenarios
