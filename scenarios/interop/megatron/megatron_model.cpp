#include <algorithm>
#include <utility>

#include "scenarios/interop/megatron/megatron_reader.h"
#include "scenarios/spec/names.h"

namespace tandem::scenarios {

void MegatronReader::sizes() {
  const std::string line = "a command line of pretrain_gpt.py";
  const std::string pattern = hybrid_pattern();
  constexpr std::int64_t most = 1'000'000;
  layers_ = pattern.empty() || arguments_.has("num-layers") ? arguments_.required_integer("num-layers", line)
                                                            : static_cast<std::int64_t>(pattern.size());
  hidden_ = arguments_.required_integer("hidden-size", line);
  heads_ = arguments_.required_integer("num-attention-heads", line);
  for (const auto& [name, value] : {std::pair{"num-layers", layers_}, {"hidden-size", hidden_}, {"num-attention-heads", heads_}})
    if (value < 1 || value > most)
      throw InputError(arguments_.place(name),
                       "--" + std::string(name) + " is " + std::to_string(value) + ", expected 1 to 1,000,000");
  tp_ = positive("tensor-model-parallel-size", 1);
  pp_ = positive("pipeline-model-parallel-size", 1);
  cp_ = positive("context-parallel-size", 1);
  for (const auto& [name, value] :
       {std::pair{"tensor-model-parallel-size", tp_}, {"pipeline-model-parallel-size", pp_}, {"context-parallel-size", cp_}})
    if (value > most)
      throw InputError(arguments_.place(name),
                       "--" + std::string(name) + " is " + std::to_string(value) + ", expected 1 to 1,000,000");
}

/// The letters of hybrid layers, without those that predict further tokens; under either of its names.
const char* MegatronReader::hybrid_argument() {
  return arguments_.has("hybrid-layer-pattern") ? "hybrid-layer-pattern" : "hybrid-override-pattern";
}

std::string MegatronReader::hybrid_pattern() {
  const std::string pattern = arguments_.text(hybrid_argument(), "");
  return pattern.substr(0, pattern.find('/'));
}

void MegatronReader::layers_that_differ(YamlNode& model) {
  arguments_.has("is-hybrid-model");
  const std::string pattern = hybrid_pattern();
  if (pattern.empty()) return;
  const char* const argument = hybrid_argument();
  std::string letters;
  for (const Named<LayerType>& letter : hybrid_letters) letters += letter.name;
  if (pattern.find_first_not_of(letters) != std::string::npos) fail(argument, "letters of " + letters);
  put(model, "layer_types", pattern, arguments_.place(argument));
  if (pattern.find('M') == std::string::npos) return;
  YamlNode& mamba = section_of(model, "mamba", arguments_.place(argument));
  const std::int64_t head_dim = positive("mamba-head-dim", 64);
  arguments_.copy_integer(mamba, "heads", "mamba-num-heads", 2 * hidden_ / head_dim);
  arguments_.copy_integer(mamba, "head_dim", "mamba-head-dim", 64);
  arguments_.copy_integer(mamba, "groups", "mamba-num-groups", 8);
  arguments_.copy_integer(mamba, "state", "mamba-state-dim", 128);
}

void MegatronReader::model() {
  YamlNode& node = section("model");
  const bool gated = arguments_.has("swiglu") || arguments_.has("geglu") || arguments_.has("quick-geglu");
  put(node, "layers", layers_, arguments_.place("num-layers"));
  put(node, "hidden", hidden_, arguments_.place("hidden-size"));
  const std::int64_t usual_ffn = arguments_.has("swiglu") ? hidden_ * 4 * 2 / 3 / 64 * 64 : 4 * hidden_;
  arguments_.copy_integer(node, "ffn", "ffn-hidden-size", usual_ffn);
  put(node, "gated", gated, arguments_.place("swiglu"));
  activation(node);
  put(node, "norm",
      name_in(norm_names, arguments_.text("normalization", "LayerNorm") == "RMSNorm" ? NormKind::rms : NormKind::layer),
      arguments_.place("normalization"));
  vocabulary(node);
  put(node, "tied_embeddings", !arguments_.has("untie-embeddings-and-output-weights"), {.file = file_});
  arguments_.copy_integer(node, "mtp_depth", "mtp-num-layers", 0);
  layers_that_differ(node);
  const bool biased = !arguments_.has("disable-bias-linear");
  const bool takes_biases = arguments_.integer("num-experts", 0) == 0 && !arguments_.has("multi-latent-attention");
  put(node, "linear_bias", biased && takes_biases, arguments_.place("disable-bias-linear"));
  if (arguments_.has("add-qkv-bias") && !arguments_.has("multi-latent-attention"))
    put(node, "attention_bias", name_in(attention_bias_names, AttentionBias::qkv), arguments_.place("add-qkv-bias"));
  positions(node);
}

/// Values have a limit with --quick-geglu alone.
void MegatronReader::activation(YamlNode& node) {
  if (arguments_.has("squared-relu"))
    put(node, "activation", name_in(mlp_function_names, MlpFunction::squared_relu), arguments_.place("squared-relu"));
  if (arguments_.has("geglu")) put(node, "activation", name_in(mlp_function_names, MlpFunction::gelu), arguments_.place("geglu"));
  const bool is_quick = arguments_.has("quick-geglu"), gated = is_quick || arguments_.has("swiglu") || arguments_.has("geglu");
  if (is_quick) put(node, "activation", name_in(mlp_function_names, MlpFunction::quick_gelu), arguments_.place("quick-geglu"));
  if (const double limit = arguments_.number("activation-func-clamp-value", 0); is_quick && limit > 0)
    put(node, "activation_limit", limit, arguments_.place("activation-func-clamp-value"));
  if (const double offset = arguments_.number("glu-linear-offset", 0); gated && offset != 0)
    put(node, "activation_offset", offset, arguments_.place("glu-linear-offset"));
}

void MegatronReader::positions(YamlNode& node) {
  const std::string type =
      arguments_.has("use-rotary-position-embeddings") ? "rope" : arguments_.text("position-embedding-type", "learned_absolute");
  const Place place = arguments_.place("position-embedding-type");
  if (type != "rope" && type != "yarn" && type != "learned_absolute" && type != "none")
    fail("position-embedding-type", "rope, yarn, learned_absolute or none");
  const bool rotary = type == "rope" || type == "yarn";
  put(node, "rotary", rotary, place);
  arguments_.has("max-position-embeddings");
  if (type == "yarn" && !arguments_.has("multi-latent-attention")) put(node, "rope_scaling", type, place);
  if (rotary) {
    put(node, "rotary_base", arguments_.number("rotary-base", 10'000), arguments_.place("rotary-base"));
    if (arguments_.has("rotary-percent"))
      put(node, "rotary_share", arguments_.number("rotary-percent", 1), arguments_.place("rotary-percent"));
  } else if (type == "none") {
    put(node, "max_positions", std::int64_t{0}, place);
  } else {
    arguments_.copy_integer(node, "max_positions", "max-position-embeddings", arguments_.integer("seq-length", 0));
  }
}

}  // namespace tandem::scenarios
