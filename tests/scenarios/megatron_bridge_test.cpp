// Megatron-Bridge's run_config.yaml, and what is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/input_error.h"
#include "scenarios/interop/formats.h"
#include "scenarios/spec/parameter_count.h"
#include "tests/scenarios/base_scenario.h"
#include "tests/scenarios/interop_scenario.h"

namespace tandem::scenarios::megatron_bridge_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// The shape of Llama 3.2 1B (its config.json), as a resolved configuration of Megatron-Bridge 0.2 has it.
constexpr const char* of_1b = R"(_target_: megatron.bridge.training.config.ConfigContainer
checkpoint: {_target_: megatron.bridge.training.config.CheckpointConfig, save_interval: 500}
comm_overlap: null
dataset:
  _target_: megatron.bridge.training.config.GPTDatasetConfig
  sequence_length: 1024
ddp: {bucket_size: 40000000, grad_reduce_in_fp32: true, overlap_grad_reduce: true, use_distributed_optimizer: true}
mixed_precision: bf16_mixed
model:
  _target_: megatron.bridge.models.llama.llama_provider.Llama31ModelProvider
  activation_func: {_call_: false, _target_: torch.nn.functional.silu}
  add_bias_linear: false
  attention_backend: {_args_: [5], _call_: true, _target_: megatron.core.transformer.enums.AttnBackend}
  context_parallel_size: 1
  cp_comm_type: null
  expert_model_parallel_size: 1
  ffn_hidden_size: 8192
  gated_linear_unit: true
  hidden_size: 2048
  kv_channels: 64
  layernorm_epsilon: 1.0e-05
  moe_layer_freq: 1
  moe_router_topk: 2
  normalization: RMSNorm
  num_attention_heads: 32
  num_layers: 16
  num_moe_experts: null
  num_query_groups: 8
  pipeline_model_parallel_size: 1
  position_embedding_type: rope
  recompute_granularity: null
  recompute_modules: [core_attn]
  rotary_base: 500000.0
  seq_length: 131072
  share_embeddings_and_output_weights: true
  should_pad_vocab: false
  tensor_model_parallel_size: 1
  vocab_size: 128256
optimizer: {optimizer: adam, use_distributed_optimizer: true}
train: {global_batch_size: 512, micro_batch_size: 1, train_iters: 10}
)";

Imported read_bridge(const std::string& text, std::int64_t gpus = 8) {
  return find_importer("megatron-bridge")->read({.text = text, .file = "run_config.yaml", .gpus = gpus});
}

std::string without(std::string text, const std::string& line) {
  const std::size_t at = text.find(line);
  return text.erase(at, text.find('\n', at) + 1 - at);
}

std::string with(std::string text, const std::string& old, const std::string& other) {
  return text.replace(text.find(old), old.size(), other);
}

TEST(MegatronBridge, OfAResolvedRun) {
  const Imported imported = read_bridge(of_1b);
  EXPECT_THAT(imported.ignored, testing::ElementsAre("checkpoint"));
  const Scenario scenario = scenario_of(imported);
  // embedding 128256 * 2048; a layer: queries and outputs 2 * 2048^2, keys and values 2 * 2048 * 8 * 64, MLP 3 * 2048 * 8192, two
  // norms; a norm at the end; the head is the embedding
  EXPECT_EQ(parameter_count(scenario.model),
            128256 * 2048 + 16 * (2 * 2048 * 2048 + 2 * 2048 * 512 + 3 * 2048 * 8192 + 2 * 2048) + 2048);
  EXPECT_EQ(scenario.training.sequence, 1024);  // of the data, not of the model
  EXPECT_THAT(imported.notes, testing::ElementsAre(HasSubstr("1024 goes before model.seq_length 131072")));
  EXPECT_EQ(scenario.parallelism.dp, 8);
  EXPECT_EQ(scenario.parallelism.zero, 1);
  EXPECT_TRUE(scenario.training.overlap_dp);
  EXPECT_EQ(scenario.training.bucket_parameters, 40'000'000);
  EXPECT_EQ(scenario.training.global_batch, 512);
  EXPECT_EQ(scenario.training.precision, DType::bf16);
  EXPECT_EQ(scenario.training.grad_dtype, DType::f32);
}

TEST(MegatronBridge, NamesOfPrecisionRecipesStandForFields) {
  const Scenario mx = scenario_of(read_bridge(with(of_1b, "bf16_mixed", "bf16-with-mxfp8-mixed")));
  EXPECT_EQ(mx.training.precision, DType::f8);
  EXPECT_EQ(mx.training.recipe, Recipe::mxfp8);
  const Scenario current = scenario_of(read_bridge(with(of_1b, "bf16_mixed", "bf16_with_fp8_current_scaling_mixed")));
  EXPECT_EQ(current.training.recipe, Recipe::current);
  EXPECT_TRUE(current.training.first_last_layers_bf16);
  EXPECT_TRUE(current.training.param_gather);
}

// Said of the model, and of delayed scaling alone.
TEST(MegatronBridge, MaximaAreReducedWhereTheModelSays) {
  const std::string within = with(of_1b, "vocab_size: 128256", "vocab_size: 128256\n  tp_only_amax_red: true");
  EXPECT_FALSE(scenario_of(read_bridge(within)).training.tp_only_amax_red);
  const std::string delayed = "bf16_with_fp8_delayed_scaling_mixed";
  EXPECT_TRUE(scenario_of(read_bridge(with(within, "bf16_mixed", delayed))).training.tp_only_amax_red);
  EXPECT_FALSE(scenario_of(read_bridge(with(of_1b, "bf16_mixed", delayed))).training.tp_only_amax_red);
}

// bridge/training/comm_overlap.py: with replicas and the distributed optimizer both overlap in buckets of 128 * 1024^2; transfers
// of a pipeline do with virtual stages.
TEST(MegatronBridge, CommunicationOverlapHasDefaultsOfItsOwn) {
  const std::string text = with(with(of_1b, "comm_overlap: null", "comm_overlap: {tp_comm_overlap: true}"),
                                "overlap_grad_reduce: true", "overlap_grad_reduce: false");
  const Scenario scenario = scenario_of(read_bridge(text));
  EXPECT_TRUE(scenario.training.overlap_dp);
  EXPECT_TRUE(scenario.training.overlap_tp);
  EXPECT_EQ(scenario.training.bucket_parameters, 128 * 1024 * 1024);
}

TEST(MegatronBridge, PipelineLayoutsAreListsOfNames) {
  std::string text = with(
      of_1b, "pipeline_model_parallel_size: 1",
      "pipeline_model_parallel_size: 2\n  pipeline_model_parallel_layout: [[embedding, decoder, decoder, decoder, decoder, "
      "decoder, decoder, decoder], [decoder, decoder, decoder, decoder, decoder, decoder, decoder, decoder, decoder, loss]]");
  const Imported imported = read_bridge(text);
  EXPECT_EQ(find_path(imported.document, "parallelism.pipeline_layout")->text, "Et*7|t*9L");
  EXPECT_EQ(find_path(imported.document, "parallelism.vpp")->text, "1");
}

// Qwen3-Next: three gated delta nets, then attention (transformer_config.py, linear_attention_freq).
TEST(MegatronBridge, GatedDeltaNetsAreLayers) {
  const std::string text = with(of_1b, "num_moe_experts: null",
                                "num_moe_experts: 8\n  moe_ffn_hidden_size: 512\n  moe_token_dispatcher_type: alltoall\n"
                                "  experimental_attention_variant: gated_delta_net\n  linear_attention_freq: 4\n"
                                "  linear_num_key_heads: 16\n  linear_num_value_heads: 32");
  const Scenario scenario = scenario_of(read_bridge(text));
  EXPECT_EQ(scenario.model.layer_types,
            (std::vector<LayerType>{
                {Mixer::linear_attention}, {Mixer::linear_attention}, {Mixer::linear_attention}, {Mixer::full_attention}}));
  EXPECT_EQ(scenario.model.linear_attention.value_heads, 32);
  EXPECT_EQ(scenario.model.moe.experts, 8);
  EXPECT_EQ(scenario.model.moe.top_k, 2);
}

// gpt-oss: biases in attention and experts, a window in every second layer, sinks.
TEST(MegatronBridge, BiasesOfModelsWithExperts) {
  const std::string text =
      with(with(of_1b, "add_bias_linear: false", "add_bias_linear: true\n  softmax_type: learnable"), "num_moe_experts: null",
           "num_moe_experts: 8\n  moe_ffn_hidden_size: 512\n  window_size: [127, 0]\n  window_attn_skip_freq: 2");
  EXPECT_EQ(
      scenario_of(read_bridge(with(text, "position_embedding_type: rope", "position_embedding_type: yarn"))).model.rope_scaling,
      RopeScaling::yarn);
  const Scenario scenario = scenario_of(read_bridge(text));
  EXPECT_EQ(scenario.model.attention_bias, AttentionBias::all);
  EXPECT_TRUE(scenario.model.moe.linear_bias);
  EXPECT_TRUE(scenario.model.attention_sinks);
  EXPECT_EQ(scenario.model.window, 128);
  EXPECT_EQ(scenario.model.layer_types, (std::vector<LayerType>{{Mixer::sliding_attention}, {Mixer::full_attention}}));
}

TEST(MegatronBridge, IsRefusedWithWhatIsMissingAndWhere) {
  const auto refused = [](const std::string& text) -> std::string {
    try {
      read_bridge(text);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(
      refused("train: {micro_batch_size: 1, global_batch_size: 8}\nmodel:\n  seq_length: 4096\n"),
      StartsWith("run_config.yaml:3:3: model.num_layers, model.hidden_size, model.num_attention_heads are missing: the file "
                 "overrides a recipe; expected the resolved run_config.yaml"));
  EXPECT_THAT(refused(with(of_1b, "bf16_mixed", "bf17_mixed")),
              HasSubstr("there is no precision recipe `bf17_mixed`; did you mean"));
  EXPECT_THAT(refused(with(of_1b, "hidden_size: 2048", "hidden_size: wide")),
              HasSubstr("model.hidden_size is `wide`, expected a whole"));
  EXPECT_THAT(refused(without(of_1b, "  sequence_length")), "accepted");  // the model's, then
  EXPECT_THAT(refused(std::string(of_1b) + "peft: {_target_: megatron.bridge.peft.lora.LoRA, dim: 32}\n"),
              HasSubstr("trains adapters"));
  EXPECT_THAT(refused(with(of_1b, "num_moe_experts: null", "num_moe_experts: 8\n  expert_model_parallel_size: 8")),
              HasSubstr("is given twice"));
}

TEST(MegatronBridge, VocabulariesOfTokenizersArePaddedOrAskedFor) {
  const std::string text =
      with(with(of_1b, "vocab_size: 128256", "vocab_size: null"), "should_pad_vocab: false", "should_pad_vocab: true");
  const Imported known =
      read_bridge(text + "tokenizer: {tokenizer_type: HuggingFaceTokenizer, tokenizer_model: openai-community/gpt2}\n");
  EXPECT_EQ(find_path(known.document, "model.vocab")->text, "50304");  // 50257, padded to a multiple of 128
  EXPECT_THAT(known.assumed, testing::ElementsAre(HasSubstr("50,257")));
  const Imported unknown = read_bridge(text);
  ASSERT_EQ(unknown.missing.size(), 1);
  EXPECT_EQ(unknown.missing.front().field, "model.vocab");
  EXPECT_EQ(find_path(unknown.document, "model.vocab"), nullptr);
}

}  // namespace
}  // namespace tandem::scenarios::megatron_bridge_test
