// NeMo's configurations: of NeMo 1 and its launcher, and recipes of NeMo 2.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/input_error.h"
#include "scenarios/interop/formats.h"
#include "scenarios/interop/nemo/interpolation.h"
#include "scenarios/spec/parameter_count.h"
#include "tests/scenarios/base_scenario.h"
#include "tests/scenarios/interop_scenario.h"

namespace tandem::scenarios::nemo_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Imported read_nemo(const std::string& text, std::int64_t gpus = 0) {
  return find_importer("nemo")->read({.text = text, .file = "n.yaml", .gpus = gpus});
}

// GPT-3 (Brown et al. 2020, table 2.1) in the launcher's words, with its references.
constexpr const char* gpt3 = R"(run:
  name: gpt3_175b
  results_dir: ${base_results_dir}/${.name}
trainer: {num_nodes: 128, devices: 8, precision: bf16}
exp_manager: {explicit_log_dir: "${training.run.results_dir}/results"}
model:
  micro_batch_size: 1
  global_batch_size: 2048
  tensor_model_parallel_size: 4
  pipeline_model_parallel_size: 8
  virtual_pipeline_model_parallel_size: 6
  encoder_seq_length: 2048
  max_position_embeddings: ${.encoder_seq_length}
  num_layers: 96
  hidden_size: 12288
  ffn_hidden_size: ${multiply:4, ${.hidden_size}}
  num_attention_heads: 96
  num_query_groups: null
  kv_channels: null
  sequence_parallel: True
  overlap_p2p_comm: True
  make_vocab_size_divisible_by: 128
  tokenizer: {library: megatron, type: GPT2BPETokenizer}
  megatron_amp_O2: True
  fp8: False
  activations_checkpoint_granularity: null
  optim: {name: mcore_distributed_optim, bucket_cap_mb: 220, overlap_grad_sync: True, lr: 0.9e-4}
  data: {seq_length: "${model.encoder_seq_length}"}
)";

TEST(Nemo, OfGpt3) {
  const Imported imported = read_nemo(gpt3);
  EXPECT_THAT(imported.ignored, testing::IsEmpty());
  const Scenario scenario = scenario_of(imported, 1024);
  EXPECT_EQ(scenario.model.ffn, 4 * 12288);
  EXPECT_EQ(scenario.model.max_positions, 2048);
  EXPECT_TRUE(scenario.model.linear_bias);
  EXPECT_TRUE(scenario.model.tied_embeddings);
  EXPECT_EQ(scenario.model.vocab, 50688);  // 50257, padded to a multiple of 128 * 4
  EXPECT_EQ(scenario.parallelism.dp, 1024 / (4 * 8));
  EXPECT_EQ(scenario.parallelism.vpp, 6);
  EXPECT_EQ(scenario.parallelism.zero, 1);
  EXPECT_EQ(scenario.training.schedule, ScheduleKind::interleaved);
  EXPECT_TRUE(scenario.training.overlap_pp);
  EXPECT_EQ(scenario.training.sequence, 2048);
  EXPECT_EQ(scenario.training.grad_dtype, DType::f32);
  EXPECT_EQ(scenario.software.name, "nemo");
  EXPECT_EQ(scenario.name, "gpt3_175b");
}

TEST(Nemo, GpusOfTheCommandLineGoBeforeTheFile) {
  const Imported imported = read_nemo(gpt3, 512);
  EXPECT_THAT(imported.notes, testing::Contains(HasSubstr("--gpus 512 goes before the file's 1024")));
  EXPECT_EQ(find_path(imported.document, "parallelism.dp"), nullptr);
}

TEST(Nemo, IsRefusedWithAPlace) {
  const auto refused = [](const std::string& text) -> std::string {
    try {
      read_nemo(text);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  const auto with = [](const std::string& old, const std::string& other) {
    std::string text = gpt3;
    return text.replace(text.find(old), old.size(), other);
  };
  EXPECT_THAT(refused("trainer: {devices: 8}\n"), StartsWith("n.yaml: has no sections `trainer` and `model`"));
  EXPECT_THAT(refused("trainer: {devices: 8}\nmodel: {hidden_size: 64}\n"),
              HasSubstr("model.num_layers, model.num_attention_heads, model.micro_batch_size are missing"));
  EXPECT_THAT(refused(with("num_nodes: 128, devices: 8", "num_nodes: 5, devices: 3")),
              StartsWith("n.yaml:4:22: 15 GPUs, num_nodes times devices, are no multiple of the 32 ranks of a replica"));
  EXPECT_THAT(refused(with("precision: bf16", "precision: int4")),
              HasSubstr("trainer.precision is `int4`, expected bf16, 16 or 32"));
  EXPECT_THAT(refused(with("num_query_groups: null", "activation: reglu")), HasSubstr("model.activation is `reglu`"));
}

TEST(Nemo, ReferencesAreFollowed) {
  YamlNode root = parse_yaml(
      "a: {x: 3, y: '${.x}', z: '${multiply:${.x}, ${b.w}, 2}', t: 'n${.x}', n: '${b.none}'}\n"
      "b: {w: '${a.x}', loop: '${.loop}', away: '${elsewhere}/f', up: {v: '${..w}'}, none: null}\n",
      "n.yaml");
  resolve_interpolations(root);
  EXPECT_EQ(find_path(root, "a.y")->text, "3");
  EXPECT_EQ(find_path(root, "a.z")->text, "18");
  EXPECT_EQ(find_path(root, "a.t")->text, "n3");
  EXPECT_EQ(find_path(root, "a.n")->kind, YamlNode::Kind::null);
  EXPECT_EQ(find_path(root, "b.up.v")->text, "3");
  EXPECT_EQ(find_path(root, "b.loop")->text, "${.loop}");
  EXPECT_EQ(find_path(root, "b.away")->text, "${elsewhere}/f");
}

constexpr const char* recipe = R"(_partial_: true
_target_: nemo.collections.llm.api.pretrain
data: {_target_: nemo.collections.llm.gpt.data.mock.MockDataModule, global_batch_size: 128, micro_batch_size: 1, seq_length: 8192}
log: {_target_: nemo.lightning.nemo_logger.NeMoLogger, name: default}
model:
  _target_: nemo.collections.llm.gpt.model.llama.LlamaModel
  config: {_target_: nemo.collections.llm.gpt.model.llama.Llama3Config8B, num_layers: 16}
optim:
  config: {_target_: megatron.core.optimizer.optimizer_config.OptimizerConfig, optimizer: adam, use_distributed_optimizer: true,
           lr: 0.0003}
trainer:
  callbacks:
  - {_target_: nemo.utils.exp_manager.TimingCallback}
  - {_target_: nemo.lightning.pytorch.callbacks.megatron_comm_overlap.MegatronCommOverlapCallback, tp_comm_overlap: true}
  devices: 8
  num_nodes: 2
  plugins: {_target_: nemo.lightning.pytorch.plugins.mixed_precision.MegatronMixedPrecision, fp8: hybrid, fp8_recipe: tensorwise,
            grad_reduce_in_fp32: false, precision: bf16-mixed}
  strategy:
    _target_: nemo.lightning.pytorch.strategies.megatron_strategy.MegatronStrategy
    context_parallel_size: 2
    ddp: {grad_reduce_in_fp32: true, overlap_grad_reduce: true}
    pipeline_model_parallel_size: 2
    sequence_parallel: true
    tensor_model_parallel_size: 2
    virtual_pipeline_model_parallel_size: 4
)";

TEST(Nemo, OfARecipeWhoseModelIsAClass) {
  const Imported imported = read_nemo(recipe);
  const Scenario scenario = scenario_of(imported, 16);
  EXPECT_EQ(scenario.model.layers, 16);
  EXPECT_EQ(scenario.model.hidden, 4096);
  EXPECT_EQ(scenario.model.kv_heads, 8);
  EXPECT_EQ(scenario.parallelism.dp, 2);
  EXPECT_EQ(scenario.parallelism.cp, 2);
  EXPECT_EQ(scenario.parallelism.vpp, 4);
  EXPECT_EQ(scenario.training.precision, DType::f8);
  EXPECT_EQ(scenario.training.recipe, Recipe::current);
  EXPECT_EQ(scenario.training.grad_dtype, DType::bf16);
  EXPECT_TRUE(scenario.training.overlap_tp);
  EXPECT_TRUE(scenario.training.overlap_pp);
  EXPECT_EQ(scenario.training.sequence, 8192);
  EXPECT_EQ(scenario.training.global_batch, 128);
  EXPECT_THAT(imported.assumed, testing::ElementsAre(HasSubstr("the model of preset llama3-8b for Llama3Config8B")));
}

TEST(Nemo, ClassesThatAreNotKnownAreNamed) {
  std::string text = recipe;
  text.replace(text.find("Llama3Config8B"), 14, "Llama3Config9B");
  try {
    read_nemo(text);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(),
                StartsWith("n.yaml:7:11: the shape of model.config `Llama3Config9B` is not known here; did you mean"));
  }
}

}  // namespace
}  // namespace tandem::scenarios::nemo_test
