// Single fields of a config.json: what they make of a model, what is said of them, and what is refused with its place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>

#include "scenarios/reading/document.h"
#include "scenarios/reading/hf_model.h"
#include "scenarios/reading/load.h"
#include "scenarios/reading/sections.h"
#include "tests/runtime/temporary_folder.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::scenarios::hf_config_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A config of this type, one line for each further field.
std::string config(const std::string& type, const std::vector<std::string>& fields) {
  std::string text = "{\"model_type\": \"" + type +
                     "\", \"num_hidden_layers\": 8, \"hidden_size\": 512, \"vocab_size\": 4096,\n" +
                     "\"num_attention_heads\": 8, \"intermediate_size\": 1024";
  for (const std::string& field : fields) text += ",\n" + field;
  return text + "}\n";
}

const std::string experts = R"("n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 128)";
const std::string latent = R"("kv_lora_rank": 64, "qk_rope_head_dim": 16, "qk_nope_head_dim": 32, "v_head_dim": 32)";

HfModel read(const std::string& type, const std::vector<std::string>& fields) {
  return read_hf_model(config(type, fields), "m/config.json");
}
ModelSpec spec(const std::string& type, const std::vector<std::string>& fields) { return read_model(read(type, fields).fields); }

std::string types_of(const std::string& type, const std::vector<std::string>& fields) {
  const YamlNode model = read(type, fields).fields;
  const YamlNode* types = model.find("layer_types");
  return types == nullptr ? "none" : to_yaml(*types);
}

std::string refusal(const std::string& type, const std::vector<std::string>& fields) {
  try {
    spec(type, fields);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

std::string refusal_of(const std::string& text) {
  try {
    read_hf_model(text, "c.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(HfConfig, LayersAttendAsTheirFamilySays) {
  const std::string window = R"("sliding_window": 64)";
  EXPECT_EQ(types_of("llama", {}), "none");
  EXPECT_EQ(types_of("mistral", {window}), "[sliding_attention]");
  EXPECT_EQ(types_of("mistral", {R"("sliding_window": null)"}), "none");
  EXPECT_EQ(types_of("gemma2", {window}), "[sliding_attention, full_attention]");
  EXPECT_EQ(types_of("gemma3", {window, R"("sliding_window_pattern": 3)"}),
            "[sliding_attention, sliding_attention, full_attention]");
  EXPECT_EQ(types_of("gemma3", {window, R"("_sliding_window_pattern": 2)"}), "[sliding_attention, full_attention]");
  EXPECT_EQ(types_of("qwen2", {window, R"("use_sliding_window": false)", R"("max_window_layers": 4)"}), "none");
  EXPECT_EQ(types_of("qwen2", {window, R"("use_sliding_window": true)", R"("max_window_layers": 8)"}), "none");
  EXPECT_EQ(types_of("qwen2", {window, R"("use_sliding_window": true)", R"("max_window_layers": 0)"}), "[sliding_attention]");
  EXPECT_EQ(types_of("qwen2", {window, R"("use_sliding_window": true)", R"("max_window_layers": 6)"}),
            "[full_attention, full_attention, full_attention, full_attention, full_attention, full_attention, "
            "sliding_attention, sliding_attention]");
  EXPECT_EQ(types_of("qwen3", {window, R"("layer_types": ["full_attention", "sliding_attention", "full_attention",
      "sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention"])"}),
            "[full_attention, sliding_attention]");
}

TEST(HfConfig, ExpertsLieInTheLayersThatTheFamilySays) {
  const std::vector<std::string> deepseek{
      R"("kv_lora_rank": 64, "qk_rope_head_dim": 16, "qk_nope_head_dim": 32, "v_head_dim": 32)",
      R"("n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 128)"};
  const auto with = [](std::vector<std::string> fields, const std::string& more) {
    fields.push_back(more);
    return fields;
  };
  const ModelSpec after = spec("deepseek_v3", with(deepseek, R"("first_k_dense_replace": 3, "moe_layer_freq": 2)"));
  EXPECT_EQ(after.moe.first_dense_layers, 4);  // the first even one from the third on
  EXPECT_EQ(after.moe.every, 2);
  const std::vector<std::string> qwen{R"("num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 128)"};
  const ModelSpec stepped = spec("qwen3_moe", with(qwen, R"("decoder_sparse_step": 2)"));
  EXPECT_EQ(stepped.moe.first_dense_layers, 1);
  EXPECT_EQ(stepped.moe.every, 2);
  EXPECT_EQ(spec("qwen3_moe", with(qwen, R"("mlp_only_layers": [0, 1])")).moe.first_dense_layers, 2);
  EXPECT_THAT(refusal("qwen3_moe", with(qwen, R"("mlp_only_layers": [3])")),
              AllOf(HasSubstr("m/config.json:4:20: mlp_only_layers"), HasSubstr("expected experts in every n-th layer")));
}

TEST(HfConfig, ANestedLanguageModelIsRead) {
  const HfModel model =
      read_hf_model(R"({"model_type": "mistral3", "vision_config": {"hidden_size": 64}, "tie_word_embeddings": true,
      "text_config": {"model_type": "mistral", "num_hidden_layers": 2, "hidden_size": 512, "num_attention_heads": 8,
      "intermediate_size": 1024, "vocab_size": 4096}, "projector": 3})",
                    "config.json");
  const ModelSpec spec = read_model(model.fields);
  EXPECT_EQ(spec.name, "mistral");  // a file without a folder
  EXPECT_EQ(spec.hidden, 512);
  EXPECT_TRUE(spec.tied_embeddings);
  EXPECT_THAT(model.unused, ElementsAre("projector"));
  EXPECT_THAT(model.notes, ElementsAre(HasSubstr("config.json:1:45: vision_config: the encoder of images is left out")));
}

TEST(HfConfig, RoutersAreAsTheyAreStated) {
  const auto router = [&](const std::string& type, const std::string& more) { return spec(type, {experts, latent, more}).moe; };
  const MoeSpec grouped = router("deepseek_v3", R"("n_group": 4, "topk_group": 2, "routed_scaling_factor": 1.5)");
  EXPECT_EQ(grouped.groups, 4);
  EXPECT_EQ(grouped.node_limit, 2);
  EXPECT_EQ(grouped.scaling_factor, 1.5);
  EXPECT_EQ(grouped.score_function, ScoreFunction::sigmoid);
  EXPECT_TRUE(grouped.expert_bias);
  EXPECT_EQ(router("deepseek_v3", R"("n_group": 4, "topk_group": 4)").groups, 0);  // no limit
  EXPECT_FALSE(router("deepseek_v3", R"("topk_method": "greedy")").expert_bias);
  EXPECT_TRUE(router("deepseek_v2", R"("n_shared_experts": 2)").pre_softmax);  // norm_topk_prob is false by default
  EXPECT_FALSE(router("deepseek_v2", R"("norm_topk_prob": true)").pre_softmax);
  EXPECT_EQ(router("deepseek_v2", R"("aux_loss_alpha": 0.002)").balance_loss, 0.002);
  EXPECT_EQ(router("deepseek_v3", R"("seq_aux": true)").balance_scope, BalanceScope::sequence);
  EXPECT_EQ(router("deepseek_v3", R"("seq_aux": false)").balance_scope, BalanceScope::micro_batch);
  EXPECT_THAT(read("deepseek_v3", {experts, latent, R"("norm_topk_prob": false)"}).notes,
              ElementsAre(HasSubstr("norm_topk_prob")));
}

TEST(HfConfig, WhatAModelHasBesideIsSaid) {
  const HfModel model = read(
      "qwen2", {R"("clip_qkv": 12.0)", R"("made_up": 7)", R"("off": false)", R"("attention_dropout": 0.1, "some_token_id": 3)"});
  EXPECT_THAT(model.unused, ElementsAre("made_up"));
  EXPECT_THAT(model.notes, ElementsAre(HasSubstr("m/config.json:3:13: clip_qkv: the clipping of queries")));
  EXPECT_THAT(read("llama", {R"("mlp_bias": true)"}).notes, ElementsAre(HasSubstr("biases of the MLP are not modelled")));
}

TEST(HfConfig, FactorsGatesAndLimitsAreRead) {
  const ModelSpec granite = spec("granite", {R"("embedding_multiplier": 12.0, "logits_scaling": 8, "residual_multiplier": 0.25)",
                                             R"("attention_multiplier": 0.0156)"});
  EXPECT_EQ(granite.embedding_factor, 12);
  EXPECT_EQ(granite.logit_factor, 0.125);
  EXPECT_EQ(granite.attention_scale, 0.0156);
  EXPECT_EQ(granite.residual.full_attention.beta, 0.25);
  EXPECT_EQ(granite.residual.mlp.beta, 0.25);
  EXPECT_EQ(granite.residual.mlp.alpha, 1);
  const ModelSpec gemma = spec("gemma3", {R"("query_pre_attn_scalar": 64, "head_dim": 128)"});
  EXPECT_EQ(gemma.attention_scale, 0.125);
  EXPECT_EQ(gemma.embedding_factor, std::sqrt(512.0));                                // by its code
  EXPECT_EQ(spec("gemma3", {R"("query_pre_attn_scalar": 256)"}).attention_scale, 0);  // as the width says
  const ModelSpec gpt_oss = spec("gpt_oss", {experts});
  EXPECT_EQ(gpt_oss.activation, MlpFunction::quick_gelu);
  EXPECT_EQ(gpt_oss.activation_limit, 7);
  EXPECT_EQ(gpt_oss.activation_offset, 1);
  EXPECT_TRUE(gpt_oss.moe.router_bias);
  EXPECT_EQ(spec("llama", {R"("swiglu_limit": 10)"}).activation_limit, 10);
  EXPECT_EQ(gpt_oss.rope_scaling, RopeScaling::none);  // the file says it
  for (const char* yarn : {R"("rope_scaling": {"rope_type": "yarn", "factor": 4.0})", R"("rope_scaling": {"type": "yarn"})",
                           R"("rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0})"})
    EXPECT_EQ(spec("qwen3", {yarn}).rope_scaling, RopeScaling::yarn) << yarn;
  EXPECT_EQ(spec("qwen3", {R"("rope_scaling": {"rope_type": "linear", "factor": 8.0})"}).rope_scaling, RopeScaling::none);
  EXPECT_EQ(spec("deepseek_v3", {experts, latent, R"("rope_scaling": {"type": "yarn"})"}).rope_scaling, RopeScaling::none);
  EXPECT_EQ(spec("deepseek_v2", {experts, latent, R"("n_group": 4, "topk_group": 2, "topk_method": "group_limited_greedy")"})
                .moe.best_of_group,
            1);
  EXPECT_TRUE(spec("llama", {R"("attn_output_gate": true)"}).attention_gate);
}

TEST(HfConfig, BiasesAreThoseOfTheFamily) {
  EXPECT_THAT(read("llama", {R"("attention_bias": false)"}).notes, IsEmpty());
  EXPECT_EQ(spec("llama", {}).attention_bias, AttentionBias::none);
  EXPECT_EQ(spec("llama", {R"("attention_bias": true)"}).attention_bias, AttentionBias::all);
  EXPECT_EQ(spec("llama", {R"("qkv_bias": true)"}).attention_bias, AttentionBias::qkv);
  EXPECT_EQ(spec("qwen2", {}).attention_bias, AttentionBias::qkv);  // by default
  EXPECT_EQ(spec("qwen2", {R"("attention_bias": false)"}).attention_bias, AttentionBias::none);
  EXPECT_TRUE(spec("llama", {R"("attention_bias": true, "mlp_bias": true)"}).linear_bias);
  EXPECT_FALSE(spec("llama", {R"("attention_bias": true)"}).linear_bias);
  EXPECT_EQ(spec("gemma2", {}).logit_softcap, 30);  // by default
  EXPECT_EQ(spec("gemma2", {R"("final_logit_softcapping": null)"}).logit_softcap, 0);
}

TEST(HfConfig, IndexersAreThoseOfTheFamily) {
  const IndexerSpec deepseek = spec("deepseek_v32", {experts, latent}).indexer;
  EXPECT_EQ(deepseek.heads, 64);
  EXPECT_EQ(deepseek.head_dim, 128);
  EXPECT_EQ(deepseek.top_k, 2048);
  EXPECT_EQ(spec("glm_moe_dsa", {experts, latent, R"("index_topk": 512)"}).indexer.top_k, 512);
  EXPECT_EQ(spec("glm_moe_dsa", {experts, latent}).indexer.heads, 32);
  EXPECT_FALSE(spec("deepseek_v3", {experts, latent}).indexer.enabled());
}

// The names of MiniMaxAI's files and of transformers.
TEST(HfConfig, ReadsLightningAttention) {
  const std::string few = R"("num_local_experts": 4, "num_experts_per_tok": 2)";
  EXPECT_EQ(types_of("minimax_m1", {few, R"("attn_type_list": [0, 0, 0, 1, 0, 0, 0, 1])"}),
            types_of("minimax", {few, R"("layer_types": ["linear_attention", "linear_attention", "linear_attention",
      "full_attention", "linear_attention", "linear_attention", "linear_attention", "full_attention"])"}));
  EXPECT_THAT(types_of("minimax_m1", {few, R"("attn_type_list": [0, 0, 0, 1, 0, 0, 0, 1])"}), HasSubstr("lightning_attention"));
  const ModelSpec theirs =
      spec("minimax_m1", {few, R"("layernorm_linear_attention_alpha": 3.5, "layernorm_mlp_beta": 2, "head_dim": 32)"});
  const ModelSpec of_transformers =
      spec("minimax", {few, R"("linear_attn_alpha_factor": 3.5, "mlp_beta_factor": 2, "head_dim": 32, "block_size": 128)"});
  for (const ModelSpec& model : {theirs, of_transformers}) {
    EXPECT_EQ(model.lightning.heads, 8);
    EXPECT_EQ(model.lightning.head_dim, 32);
    EXPECT_EQ(model.residual.linear_attention.alpha, 3.5);
    EXPECT_EQ(model.residual.mlp.beta, 2);
    EXPECT_EQ(model.residual.full_attention.alpha, 1);
    EXPECT_EQ(model.norm_placement, NormPlacement::residual);
  }
  EXPECT_EQ(theirs.lightning.chunk, 256);
  EXPECT_EQ(of_transformers.lightning.chunk, 128);
  EXPECT_EQ(spec("minimax", {few}).lightning.head_dim, 512 / 8);
  EXPECT_EQ(spec("minimax_text_01", {few, R"("postnorm": false)"}).norm_placement, NormPlacement::pre);
  EXPECT_FALSE(spec("minimax_m1", {few, R"("attn_type_list": [1, 1, 1, 1, 1, 1, 1, 1])"}).lightning.enabled());
  EXPECT_THAT(refusal("minimax_m1", {few, R"("attn_type_list": [0, 1])"}),
              HasSubstr("attn_type_list lists 2 layers, expected num_hidden_layers, 8"));
}

TEST(HfConfig, RefusesOtherModels) {
  EXPECT_THAT(refusal("falcon", {R"("parallel_attn": true)"}),
              AllOf(HasSubstr("m/config.json:3:18: parallel_attn"), HasSubstr("side by side")));
  EXPECT_THAT(refusal("glm_moe_dsa", {experts, latent, R"("index_topk_freq": 4)"}),
              HasSubstr("m/config.json:5:20: layers that attend to the keys which an earlier layer chose are not lowered"));
  EXPECT_THAT(refusal("glm_moe_dsa", {experts, latent, R"("indexer_types": ["full", "shared"])"}),
              HasSubstr("layers that attend to the keys which an earlier layer chose"));
  EXPECT_THAT(refusal("llama", {R"("index_topk": 64)"}), HasSubstr("index_topk without kv_lora_rank"));
  EXPECT_THAT(refusal("mamba2", {}), HasSubstr("m/config.json:1:16: the architecture of model_type `mamba2` is not known here"));
  EXPECT_THAT(refusal("lama", {}), HasSubstr("did you mean `llama`?"));
}

TEST(HfConfig, RefusesWrongFields) {
  EXPECT_THAT(refusal("llama", {R"("hidden_act": "softsign")"}),
              HasSubstr("m/config.json:3:15: hidden_act is `softsign`, which is not lowered; expected one of: silu"));
  EXPECT_THAT(refusal("llama", {R"("layer_types": ["full_attention"])"}),
              HasSubstr("layer_types lists 1 layers, expected num_hidden_layers, 8"));
  EXPECT_THAT(refusal("llama", {R"("layer_types": ["conv"])"}), HasSubstr("layer_types has `conv`"));
  EXPECT_THAT(refusal("llama", {R"("num_key_value_heads": "4")"}),
              HasSubstr("m/config.json:3:24: model.num_key_value_heads is the text `4`, expected a whole number"));
  EXPECT_THAT(refusal("llama", {R"("num_key_value_heads": 0)"}), HasSubstr("model.num_key_value_heads is `0`"));
  EXPECT_THAT(refusal("qwen2_moe", {R"("num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 100,
      "shared_expert_intermediate_size": 250)"}),
              HasSubstr("shared_expert_intermediate_size is 250, expected a multiple of the experts' width, 100"));
  EXPECT_THAT(refusal("mixtral", {R"("num_local_experts": 8, "num_experts_per_tok": 2, "scoring_func": "tanh")"}),
              HasSubstr("model.moe.scoring_func cannot be `tanh`; expected one of: softmax, sigmoid, sqrtsoftplus"));
  EXPECT_THAT(refusal("mixtral", {}), HasSubstr("num_experts is missing, expected one of: num_experts, num_local_experts"));
  EXPECT_THAT(refusal("nemotron_h", {R"("hybrid_override_pattern": "M-")"}),
              HasSubstr("hybrid_override_pattern has 2 layers, expected num_hidden_layers, 8"));
  EXPECT_THAT(refusal_of(R"({"model_type": "llama", "hidden_size": 8})"), HasSubstr("num_hidden_layers is missing"));
  EXPECT_THAT(refusal_of(R"({"dim": 8, "n_layers": 2})"),
              HasSubstr("c.json:1:1: model_type is missing, and dim and n_layers are"));
  EXPECT_THAT(refusal_of(R"({"a": 1})"), HasSubstr("model_type is missing, expected a config.json of Hugging Face"));
  EXPECT_THAT(refusal_of("[1]"), HasSubstr("the file is a list"));
  EXPECT_THAT(refusal("llama", {R"("num_hidden_layers_": 1)"}), "accepted");
  EXPECT_THAT(refusal_of(R"({"model_type": "llama", "num_hidden_layers": 123456789, "hidden_size": 8, "vocab_size": 9,
      "num_attention_heads": 1, "intermediate_size": 8})"),
              HasSubstr("num_hidden_layers is"));
}

// Whatever a field holds, the file is a model or is refused with a place.
TEST(HfConfig, RandomValuesAreReadOrRefused) {
  const std::vector<std::string> values{"null",
                                        "true",
                                        "false",
                                        "0",
                                        "1",
                                        "-1",
                                        "3",
                                        "0.5",
                                        "1e300",
                                        "99999999999",
                                        "\"\"",
                                        "\"x\"",
                                        "[]",
                                        "{}",
                                        "[0, 1]",
                                        "[[1]]",
                                        "{\"rope_theta\": []}",
                                        "Infinity"};
  const auto is_refused = [](const std::string& text) {
    try {
      read_model(read_hf_model(text, "c.json").fields);
      return false;
    } catch (const InputError& error) {
      EXPECT_EQ(error.place().file, "c.json") << text;
      return true;
    }
  };
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same every time
  const auto any_below = [&](std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random); };
  std::size_t refused = 0, read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TANDEM_SOURCE_DIR "/tests/scenarios/hf")) {
    const std::string text = read_all(entry.path());
    std::vector<std::size_t> fields;  // where each value starts
    for (std::size_t at = text.find("\": "); at != std::string::npos; at = text.find("\": ", at + 1)) fields.push_back(at + 3);
    for (int i = 0; i < 60; ++i) {
      const std::size_t start = fields[any_below(fields.size())], end = text.find('\n', start);
      const bool nests = text[start] == '{' && end == start + 1;
      if (nests) continue;
      std::string changed = text;
      changed.replace(start, end - start - (text[end - 1] == ',' ? 1 : 0), values[any_below(values.size())]);
      (is_refused(changed) ? refused : read) += 1;
    }
  }
  EXPECT_GT(refused, 300U);
  EXPECT_GT(read, 300U);
}

TEST(HfConfig, IsTakenWhereAPresetIs) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "small");
  std::ofstream(folder / "small/config.json") << config("llama", {R"("num_key_value_heads": 4)"});
  const std::string scenario = folder / "s.yaml";
  const auto model = [&](const std::string& value) {
    return parse_scenario(base_text(), scenario, {"model=" + value, "parallelism.pp=1", "parallelism.dp="}).model;
  };
  EXPECT_EQ(model("small/config.json").name, "small");
  EXPECT_EQ(model("small/config.json").kv_heads, 4);
  EXPECT_EQ(model("{preset: small/config.json, layers: 6}").layers, 6);
  EXPECT_EQ(model("{preset: small/config.json, mtp_depth: 1}").mtp_depth, 1);
  std::ofstream(folder / "small/as.yaml") << "as: ./config.json\nvocab: 1024\n";
  EXPECT_EQ(model("small/as.yaml").vocab, 1024);
  std::ofstream(folder / "small/config.json") << config("llama", {R"("num_key_value_heads": 3)"});
  try {
    model("small/config.json");
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("small/config.json:3:24: kv_heads 3 does not divide heads 8"));
  }
}

}  // namespace
}  // namespace tandem::scenarios::hf_config_test
