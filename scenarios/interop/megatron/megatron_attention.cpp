#include <algorithm>
#include <charconv>

#include "scenarios/interop/megatron/layer_pattern.h"
#include "scenarios/interop/megatron/megatron_reader.h"

namespace tandem::scenarios {

/// --window-size (127,0) is 127 positions before the query's own; every N-th layer may do without.
void MegatronReader::windows(YamlNode& node) {
  if (!arguments_.has("window-size")) return;
  std::string size = arguments_.text("window-size", "");
  std::erase_if(size, [](char c) { return c == '(' || c == ')' || c == ' '; });
  std::int64_t before = 0;
  const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), before);
  if (error != std::errc{} || before < 0 || std::string_view(end) != ",0")
    fail("window-size", "positions before and after the query's, as in (127,0)");
  put(node, "window", before + 1, arguments_.place("window-size"));
  std::vector<std::string> types{std::string(name_in(layer_type_names, LayerType{Mixer::sliding_attention}))};
  const std::string skips = arguments_.text("window-attn-skip-freq", "");
  if (skips.find('[') != std::string::npos) {
    const auto pattern = evaluate_layer_pattern(skips);
    if (!pattern || pattern->empty()) fail("window-attn-skip-freq", "a number, or a list such as [1,1,1,0]*3");
    types.clear();
    for (const std::int64_t in_window : *pattern)
      types.emplace_back(name_in(layer_type_names, LayerType{in_window != 0 ? Mixer::sliding_attention : Mixer::full_attention}));
  } else if (!skips.empty()) {
    const std::int64_t every = positive("window-attn-skip-freq", 1);
    if (every > layers_) fail("window-attn-skip-freq", "a number of layers");
    types.assign(static_cast<std::size_t>(every - 1), types.front());
    types.emplace_back(name_in(layer_type_names, LayerType{Mixer::full_attention}));
  }
  put(node, "layer_types", list_of(types));
}

void MegatronReader::indexer(YamlNode& model) {
  const std::string variant = arguments_.text("experimental-attention-variant", "");
  if (variant.empty()) return;
  if (variant != "dsa") fail("experimental-attention-variant", "dsa");
  YamlNode& indexer = section_of(model, "indexer", arguments_.place("experimental-attention-variant"));
  arguments_.copy_integer(indexer, "heads", "dsa-indexer-n-heads", 64);
  arguments_.copy_integer(indexer, "head_dim", "dsa-indexer-head-dim", 128);
  arguments_.copy_integer(indexer, "top_k", "dsa-indexer-topk", 2048);
  if (const double coefficient = arguments_.number("dsa-indexer-loss-coeff", 0); coefficient > 0)
    put(indexer, "loss_coefficient", coefficient, arguments_.place("dsa-indexer-loss-coeff"));
  put(indexer, "sparse_loss", arguments_.has("dsa-indexer-use-sparse-loss"), arguments_.place("experimental-attention-variant"));
}

void MegatronReader::attention() {
  YamlNode& node = section("model");
  put(node, "heads", heads_, arguments_.place("num-attention-heads"));
  windows(node);
  if (arguments_.has("qk-layernorm") && !arguments_.has("multi-latent-attention"))
    put(node, "qk_norm", name_in(qk_norm_names, QkNorm::head), arguments_.place("qk-layernorm"));
  if ((arguments_.has("attention-output-gate") || arguments_.has("attn-output-gate")) &&
      !arguments_.has("multi-latent-attention"))
    put(node, "attention_gate", true, arguments_.place("attention-output-gate"));
  if (arguments_.text("softmax-type", "vanilla") == "learnable")
    put(node, "attention_sinks", true, arguments_.place("softmax-type"));
  if (arguments_.has("multi-latent-attention")) {
    YamlNode& mla = section_of(node, "mla", arguments_.place("multi-latent-attention"));
    arguments_.copy_integer(mla, "q_rank", "q-lora-rank", 0);
    arguments_.copy_integer(mla, "kv_rank", "kv-lora-rank", 32);
    arguments_.copy_integer(mla, "nope_dim", "qk-head-dim", 128);
    arguments_.copy_integer(mla, "rope_dim", "qk-pos-emb-head-dim", 64);
    arguments_.copy_integer(mla, "v_dim", "v-head-dim", 128);
    indexer(node);
    for (const char* of_others : {"kv-channels", "group-query-attention", "num-query-groups"}) arguments_.has(of_others);
  } else {
    if (arguments_.has("kv-channels")) arguments_.copy_integer(node, "head_dim", "kv-channels", 0);
    if (arguments_.has("group-query-attention")) arguments_.copy_integer(node, "kv_heads", "num-query-groups", 1);
  }
  const std::string backend = arguments_.text("attention-backend", "auto");
  if (backend == "unfused")
    put(section("training"), "attention", name_of(AttentionKernel::unfused), arguments_.place("attention-backend"));
  dropout(backend);
  if (backend == "fused") put(section("training"), "attention", "cudnn", arguments_.place("attention-backend"));
  if (backend == "flash")
    put(section("training"), "attention", name_of(AttentionKernel::flash_2), arguments_.place("attention-backend"));
}

/// Where they are not stated, the framework's choice is left to it.
void MegatronReader::dropout(const std::string& backend) {
  for (const char* name : {"hidden", "attention"}) {
    const std::string argument = std::string(name) + "-dropout";
    if (!arguments_.has(argument)) continue;
    const double probability = arguments_.number(argument, 0);
    if (std::string_view(name) == "attention" && backend != "unfused") continue;  // fused attention keeps no mask
    put(section("training"), std::string(name) + "_dropout", probability, arguments_.place(argument));
  }
}

}  // namespace tandem::scenarios
