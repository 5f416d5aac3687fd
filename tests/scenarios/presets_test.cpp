#include "scenarios/reading/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <tuple>

#include "scenarios/reading/load.h"
#include "scenarios/reading/sections.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::scenarios::presets_test {
namespace {

using testing::IsSupersetOf;

Scenario with(const std::vector<std::string>& overrides) { return parse_scenario(base_text(), "s.yaml", overrides); }

const std::vector<std::string> one_gpu{"parallelism.tp=1", "parallelism.pp=1", "parallelism.dp=", "cluster.gpus=1",
                                       "training.sequence=128"};

ModelSpec model_preset(const std::string& name) {
  std::vector<std::string> overrides = one_gpu;
  overrides.push_back("model=" + name);
  if (name.ends_with("-vision")) overrides.emplace_back("training.sequence=4096");  // images take part of it
  return with(overrides).model;
}

std::int64_t attention_parameters(const ModelSpec& m) {
  const MlaSpec& mla = m.mla;
  if (!mla.enabled()) return m.hidden * (m.heads + 2 * m.kv_heads) * m.head_dim + m.heads * m.head_dim * m.hidden;
  return mla.q_rank * (m.hidden + m.heads * mla.qk_dim()) + m.hidden * (mla.kv_rank + mla.rope_dim) +
         mla.kv_rank * m.heads * (mla.nope_dim + mla.v_dim) + m.heads * mla.v_dim * m.hidden;
}

std::int64_t mlp_parameters(const ModelSpec& m, std::int64_t layer) {
  const std::int64_t matrices = m.gated ? 3 : 2;
  if (!m.moe.in_layer(layer)) return matrices * m.hidden * m.ffn;
  return matrices * m.hidden * m.moe.ffn * (m.moe.experts + m.moe.shared_experts) + m.hidden * m.moe.experts;
}

/// Weights of the matrices, norms and embeddings, without biases, and without what predicts further tokens.
std::int64_t parameters(const ModelSpec& m) {
  const std::int64_t norm = (m.norm == NormKind::layer ? 2 : 1) * m.hidden;
  std::int64_t sum = norm + (m.tied_embeddings ? 1 : 2) * m.vocab * m.hidden + m.max_positions * m.hidden;
  for (std::int64_t layer = 0; layer < m.layers; ++layer) sum += attention_parameters(m) + mlp_parameters(m, layer) + 2 * norm;
  return sum;
}

TEST(Presets, AllModelsParse) {
  const std::vector<std::string> names = preset_names(PresetKind::model);
  EXPECT_THAT(names, IsSupersetOf({"gpt3-175b", "llama3-405b", "llama3-70b", "llama3-8b"}));
  for (const std::string& name : names) EXPECT_EQ(model_preset(name).name, name);
}

TEST(Presets, AllGpusAndClustersParse) {
  const std::vector<std::string> gpus = preset_names(PresetKind::gpu);
  EXPECT_THAT(gpus, IsSupersetOf({"a100-40gb", "a100-80gb", "h100-sxm-80gb", "h100-96gb-500w", "h800", "h200", "b200", "gb200",
                                  "b300", "gb300", "h20", "rubin", "host-cpu", "a100-80gb-pcie", "mi300x", "mi355x"}));
  for (const std::string& name : gpus) {
    const Device gpu = with({"cluster.gpu=" + name}).cluster.gpu;
    EXPECT_EQ(gpu.name, name);
    EXPECT_GT(gpu.efficiency.launch, 0);
    EXPECT_LT(gpu.efficiency.launch, 1e-4);
  }
  const std::vector<std::string> clusters = preset_names(PresetKind::cluster);
  EXPECT_THAT(clusters,
              IsSupersetOf({"dgx-a100", "dgx-h100", "dgx-h800", "dgx-h200", "dgx-b200", "gb200-nvl72", "dgx-b300", "gb300-nvl72",
                            "hgx-h20", "pcie-a100", "vera-rubin-nvl144", "llama3-24k-roce", "hgx-h100-no-rails", "mi300x-mesh",
                            "mi355x-mesh", "juwels-booster", "single-node", "host"}));
  for (const std::string& name : clusters)
    EXPECT_EQ(with({"cluster.preset=" + name, "cluster.gpus=8", "parallelism.dp=1"}).cluster.name, name);
}

TEST(Presets, AProfileTakesFromAnotherWhatItDoesNotState) {
  const KernelEfficiency h100 = with({"cluster.gpu=h100-sxm-80gb"}).cluster.gpu.efficiency;
  const KernelEfficiency capped = with({"cluster.gpu=h100-96gb-500w"}).cluster.gpu.efficiency;
  const auto bf16 = static_cast<std::size_t>(DType::bf16), fp16 = static_cast<std::size_t>(DType::f16);
  EXPECT_EQ(capped.gemm[bf16].tiles, h100.gemm[bf16].tiles);
  EXPECT_EQ(capped.gemm[bf16].rate, h100.gemm[bf16].rate);
  EXPECT_LT(capped.gemm[bf16].sustained, h100.gemm[bf16].sustained);
  EXPECT_EQ(capped.gemm[fp16].sustained, capped.gemm[bf16].sustained);
  EXPECT_EQ(capped.attention_kernel, AttentionKernel::cudnn);
}

// A product in fp8 costs about half of the power of one in bf16: under power a Blackwell keeps up about twice the TFLOP/s. One
// share of the clock that is left to operands twice as wide stands for all of them, in fp8 and in fp4.
TEST(Presets, BlackwellLosesOneShareOfTheClockEachTimeOperandsHalve) {
  const auto kept_up = [](const Device& gpu, DType type) {
    const auto at = static_cast<std::size_t>(type);
    return gpu.peak[at] * gpu.efficiency.gemm[at].rate * gpu.efficiency.gemm[at].sustained;
  };
  const auto share = [](const Device& gpu, DType type) {
    return gpu.efficiency.gemm[static_cast<std::size_t>(type)].sustained /
           gpu.efficiency.gemm[static_cast<std::size_t>(DType::bf16)].sustained;
  };
  const double of_b200 = share(with({"cluster.gpu=b200"}).cluster.gpu, DType::f8);
  for (const std::string name : {"b200", "gb200", "b300", "gb300"}) {
    const Device gpu = with({"cluster.gpu=" + name}).cluster.gpu;
    EXPECT_NEAR(share(gpu, DType::f8), of_b200, 2e-3) << name;
    EXPECT_NEAR(share(gpu, DType::f4), of_b200 * of_b200, 2e-3) << name;
    EXPECT_NEAR(kept_up(gpu, DType::f8) / kept_up(gpu, DType::bf16), 2, 0.15) << name;
  }
}

// No kernel was measured on them: they reach the shares of the GPU that they are `as`, whose peaks they have, at a clock in
// proportion to power; or between that and one that power does not limit, where it was fitted to steps (fitted.csv).
TEST(Presets, BlackwellUltraIsBlackwellWithMoreMemoryAndWiderNics) {
  const std::vector<std::tuple<std::string, std::string, double, bool>> pairs{{"dgx-b300", "dgx-b200", 1.1, false},
                                                                              {"gb300-nvl72", "gb200-nvl72", 1.4 / 1.2, true}};
  const auto bf16 = static_cast<std::size_t>(DType::bf16), fp8 = static_cast<std::size_t>(DType::f8),
             fp4 = static_cast<std::size_t>(DType::f4);
  for (const auto& [ultra_name, name, power, is_fitted] : pairs) {
    const ClusterSpec ultra = with({"cluster.preset=" + ultra_name, "cluster.gpus=8", "parallelism.dp=1"}).cluster;
    const ClusterSpec plain = with({"cluster.preset=" + name, "cluster.gpus=8", "parallelism.dp=1"}).cluster;
    for (const std::size_t type : {bf16, fp8}) {
      GemmEfficiency at_the_same_clock = ultra.gpu.efficiency.gemm[type];
      at_the_same_clock.sustained = plain.gpu.efficiency.gemm[type].sustained;
      EXPECT_EQ(at_the_same_clock, plain.gpu.efficiency.gemm[type]) << ultra_name;
      const double sustained = ultra.gpu.efficiency.gemm[type].sustained, by_power = power * at_the_same_clock.sustained;
      EXPECT_GT(sustained, by_power - 1e-3) << ultra_name;
      EXPECT_LT(sustained, is_fitted ? 1 : by_power + 1e-3) << ultra_name;
    }
    EXPECT_EQ(ultra.gpu.efficiency.attention, plain.gpu.efficiency.attention) << ultra_name;
    EXPECT_EQ(ultra.gpu.efficiency.memory, plain.gpu.efficiency.memory) << ultra_name;
    auto peak = ultra.gpu.peak;
    peak[fp4] *= 2.0 / 3;
    EXPECT_EQ(peak, plain.gpu.peak) << ultra_name;
    EXPECT_GT(ultra.gpu.efficiency.gemm[fp4].assumed, plain.gpu.efficiency.gemm[fp4].assumed) << ultra_name;
    EXPECT_GT(ultra.gpu.memory, 3 * plain.gpu.memory / 2) << ultra_name;
    EXPECT_EQ(ultra.nic_gbps, 2 * plain.nic_gbps) << ultra_name;
    EXPECT_EQ(ultra.nvlink_GBps, plain.nvlink_GBps) << ultra_name;
  }
}

TEST(Presets, GpusNameTheirArchitectureAndClustersWhetherSwitchesAddUp) {
  for (const std::string& name : preset_names(PresetKind::gpu)) {
    const bool known = with({"cluster.gpu=" + name}).cluster.gpu.architecture != Architecture::unknown;
    EXPECT_EQ(known, name != "host-cpu" && !name.starts_with("mi3")) << name;  // AMD's choose by no constants of NCCL
  }
  for (const std::string& name : preset_names(PresetKind::cluster)) {
    const ClusterSpec cluster = with({"cluster.preset=" + name, "cluster.gpus=8", "parallelism.dp=1"}).cluster;
    EXPECT_EQ(cluster.nvls, cluster.gpu.architecture >= Architecture::hopper) << name;
  }
}

// Parameter counts as published with the models: Llama 3 8.03 B, 70.6 B and 405.85 B; GPT-3 174.6 B, here without its biases and
// with 943 rows of padding in the vocabulary.
TEST(Presets, ModelsHaveTheirPublishedSize) {
  EXPECT_EQ(parameters(model_preset("llama3-8b")), 8'030'261'248);
  EXPECT_EQ(parameters(model_preset("llama3-70b")), 70'553'706'496);
  EXPECT_EQ(parameters(model_preset("llama3-405b")), 405'853'388'800);
  EXPECT_NEAR(static_cast<double>(parameters(model_preset("gpt3-175b"))), 174.6e9, 0.1e9);
}

// Of no published model (those: model_sizes_test.cpp), but of the size that their names promise.
TEST(Presets, MadeUpMixturesOfExpertsHaveTheSizeOfTheirNames) {
  const std::vector<std::pair<std::string, double>> billions{
      {"gpt4-scale-moe", 1800}, {"moe-1t", 1000}, {"moe-1t-200b-dense", 1000}};
  for (const auto& [name, expected] : billions)
    EXPECT_NEAR(static_cast<double>(parameters(model_preset(name))), expected * 1e9, 0.01 * expected * 1e9) << name;
}

// The 1T mixture of a textbook: 200B that every token uses, 800B of experts.
TEST(Presets, TheTextbooksMixtureIsSplitAsItSays) {
  const ModelSpec model = model_preset("moe-1t-200b-dense");
  const std::int64_t experts = model.layers * model.moe.experts * 3 * model.hidden * model.moe.ffn;
  EXPECT_NEAR(static_cast<double>(experts), 800e9, 2e9);
  EXPECT_NEAR(static_cast<double>(parameters(model) - experts), 200e9, 2e9);
}

// DeepSeek-V3 keeps 512 numbers of a token, where 128 heads have a key and a value of 128 each.
TEST(Presets, DeepSeekKeepsASixtyFourthOfKeysAndValues) {
  const ModelSpec model = model_preset("deepseek-v3");
  EXPECT_EQ(2 * model.heads * model.mla.v_dim, 64 * model.mla.kv_rank);
}

// Narayanan et al. 2021, table 1, first column: parameters in billions, with biases and positions, to one decimal.
TEST(Presets, MegatronModelsHaveTheSizesOfTheirTable) {
  const std::vector<std::pair<std::string, double>> table{{"1.7b", 1.7},   {"3.6b", 3.6}, {"7.5b", 7.5},   {"18b", 18.4},
                                                          {"39b", 39.1},   {"76b", 76.1}, {"145b", 145.6}, {"310b", 310.1},
                                                          {"530b", 529.6}, {"1t", 1008.0}};
  for (const auto& [name, billions] : table)
    EXPECT_NEAR(static_cast<double>(parameters(model_preset("megatron-" + name))), billions * 1e9,
                0.05e9 + 0.005 * billions * 1e9)
        << name;
}

// Two nodes of 8 GPUs per top-of-rack switch, 3,072 GPUs per pod, 1:7 above (arXiv 2407.21783, section 3.3.1).
TEST(Presets, LlamaClusterHasItsPods) {
  const ClusterSpec cluster =
      with({"cluster={preset: llama3-24k-roce, gpus: 24576}", "parallelism.dp=", "training.global_batch=3072"}).cluster;
  EXPECT_EQ(cluster.fabric.leaf_ports, 16);
  EXPECT_EQ(cluster.fabric.leaf_ports * cluster.fabric.pod_leaves, 3072);
  EXPECT_FALSE(cluster.fabric.rail_optimized);
  EXPECT_EQ(cluster.fabric.oversubscription, (std::vector<double>{1, 1, 7}));
}

TEST(Presets, FieldsCanBeOverridden) {
  std::vector<std::string> lines = base_lines();
  lines[1] = "model: {preset: llama3-405b, layers: 8}";
  lines[2] = "cluster: {preset: dgx-h100, gpus: 32, nic_gbps: 200, fabric: {tiers: 2, oversubscription: [1, 2]}}";
  const Scenario scenario = parse_scenario(joined_lines(lines), "s.yaml", {});
  EXPECT_EQ(scenario.model.layers, 8);
  EXPECT_EQ(scenario.model.hidden, 16384);
  EXPECT_DOUBLE_EQ(scenario.cluster.nic_gbps, 200);
  EXPECT_EQ(scenario.cluster.fabric.tiers, 2);
  EXPECT_EQ(scenario.cluster.fabric.leaf_ports, 32);
}

TEST(Presets, AModelCanBeAFileBesideTheScenario) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "tandem_presets";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "mine.yaml") << "num_layers: 8\nhidden_size: 512\nheads: 8\nkv_heads: 4\nffn: 1024\nvocab: 4096\n";
  std::ofstream(folder / "wrong.yaml") << "layers: 8\nhiden: 512\n";
  std::vector<std::string> lines = base_lines();
  lines[1] = "model: mine.yaml";
  std::ofstream(folder / "scenario.yaml") << joined_lines(lines);
  EXPECT_EQ(load_scenario((folder / "scenario.yaml").string(), {}).model.name, "mine");
  try {
    load_scenario((folder / "scenario.yaml").string(), {"model=wrong.yaml"});
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(error.what(), (folder / "wrong.yaml").string() + ":2:1: model has no field `hiden`; did you mean `hidden`?");
  }
  std::filesystem::remove_all(folder);
}

TEST(Presets, AConflictPointsAtTheScenarioBeforeThePreset) {
  std::vector<std::string> lines = base_lines();
  lines[1] = "model: {preset: llama3-405b, layers: 8}";
  lines[3] = "parallelism: {tp: 3}";
  try {
    parse_scenario(joined_lines(lines), "s.yaml", {});
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "s.yaml:4:19: tp 3 does not divide 128 heads; nearest that do: 2, 4");
  }
}

}  // namespace
}  // namespace tandem::scenarios::presets_test
