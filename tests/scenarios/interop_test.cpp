// A scenario in another program's words, and back: the same in all that the program expresses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <set>

#include "runtime/base/input_error.h"
#include "runtime/base/text_file.h"
#include "scenarios/interop/formats.h"
#include "scenarios/interop/layer_pattern.h"
#include "scenarios/interop/scenario_sections.h"
#include "scenarios/interop/shell_words.h"
#include "scenarios/reading/document.h"
#include "scenarios/reading/load.h"
#include "scenarios/reading/overlay.h"
#include "scenarios/reading/presets.h"
#include "scenarios/reading/yaml_mapping.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::scenarios::interop_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Exported exported_to(std::string_view program, const Scenario& scenario) { return find_exporter(program)->write({scenario, {}}); }

/// A scenario and the cluster it was read with.
struct Written {
  Scenario scenario;
  YamlNode cluster;
};

Written written(const std::string& text, const std::string& path, const std::vector<std::string>& overrides) {
  const YamlNode document = parse_document(text, path, overrides);
  return {.scenario = read_document(document, "s"), .cluster = *document.find("cluster")};
}

Scenario read_with(YamlNode document, const Written& original, std::int64_t gpus) {
  put(document, "cluster", original.cluster);
  put(section_of(document, "cluster"), "gpus", gpus);
  tidy_names(document);
  resolve_presets(document, "");
  return read_document(document, "s");
}

void erase(YamlNode& document, const std::string& path) {
  const std::size_t dot = path.rfind('.');
  if (dot == std::string::npos) return document.erase(path);
  if (const YamlNode* inside = find_path(document, path.substr(0, dot)))
    const_cast<YamlNode*>(inside)->erase(path.substr(dot + 1));
}

/// The sections as text, without what was lost and what follows from it.
std::string remaining(const Scenario& scenario, const std::vector<Lost>& lost) {
  YamlNode document = scenario_sections(scenario);
  erase(document, "name");
  erase(document, "model.name");
  for (const Lost& one : lost) {
    erase(document, one.field);
    if (one.field == "parallelism.zero")
      for (const char* field : {"reshard_after_forward", "gather_per_micro_batch", "prefetch", "hsdp"})
        erase(document, std::string("parallelism.") + field);
    if (one.field == "training.grad_dtype") erase(document, "training.bucket_MB");  // the same number of parameters
    if (one.field == "model")  // stages of so many layers count nothing without it
      for (const char* field : {"vpp", "first_stage_layers", "last_stage_layers", "account_for_embedding", "account_for_loss"})
        erase(document, std::string("parallelism.") + field);
  }
  return to_yaml(document);
}

void expect_round_trip(const Written& original, const Importer& importer) {
  const Exported exported = exported_to(importer.name, original.scenario);
  SCOPED_TRACE(exported.text);
  const std::int64_t gpus = original.scenario.parallelism.world_size();  // a placement may leave some of the cluster's to others
  Imported imported = importer.read(exported.text, "exported", gpus);
  const bool without_model = imported.document.find("model") == nullptr;
  if (without_model) {
    put(imported.document, "model", *scenario_sections(original.scenario).find("model"));
    for (const char* field : {"vpp", "first_stage_layers", "last_stage_layers", "account_for_embedding", "account_for_loss"}) {
      const YamlNode sections = scenario_sections(original.scenario);
      const YamlNode* stated = find_path(sections, std::string("parallelism.") + field);
      erase(imported.document, std::string("parallelism.") + field);
      if (stated != nullptr) put(section_of(imported.document, "parallelism"), field, *stated);
    }
  }
  EXPECT_THAT(imported.ignored, IsEmpty());
  const Scenario back = read_with(imported.document, original, gpus);
  EXPECT_EQ(remaining(back, exported.lost), remaining(original.scenario, exported.lost));
  for (const Lost& lost : exported.lost) EXPECT_THAT(exported.text, HasSubstr("# " + lost.field + ": " + lost.why));
}

std::vector<Written> shipped() {
  std::vector<Written> all;
  for (const auto& entry : std::filesystem::directory_iterator(TANDEM_SOURCE_DIR "/scenarios"))
    if (entry.path().extension() == ".yaml")
      all.push_back(written(read_text_file(entry.path().string(), "a scenario"), entry.path().string(), {}));
  return all;
}

TEST(Flags, ShippedScenariosThroughEachProgram) {
  for (const Written& one : shipped())
    for (const Importer& importer : importers()) expect_round_trip(one, importer);
}

TEST(Flags, SectionsReadAsTheSameScenario) {
  for (const Written& one : shipped()) {
    const Scenario back = read_with(scenario_sections(one.scenario), one, one.scenario.cluster.gpus);
    EXPECT_EQ(to_yaml(scenario_sections(back)), to_yaml(scenario_sections(one.scenario)));
  }
}

TEST(Flags, CompleteScenariosStandAlone) {
  for (const auto& entry : std::filesystem::directory_iterator(TANDEM_SOURCE_DIR "/scenarios")) {
    if (entry.path().extension() != ".yaml") continue;
    const YamlNode document = load_document(entry.path().string(), {});
    const YamlNode back = parse_yaml(scenario_yaml(document), "back");
    EXPECT_EQ(to_yaml(back), to_yaml(document));
    EXPECT_EQ(to_yaml(scenario_sections(read_document(back, "s"))), to_yaml(scenario_sections(read_document(document, "s"))));
  }
}

/// Options that change one thing each; those that no scenario admits together are passed over.
std::vector<std::string> random_options(std::mt19937& random) {
  const std::vector<std::vector<std::string>> choices{
      {"model=llama3-8b", "model={preset: deepseek-v3, layers: 64, moe: {first_dense_layers: 4, every: 2}}", "model=gpt3-175b",
       "model=qwen3-30b-a3b", "model={preset: mixtral-8x7b, rotary_base: 12345.5}"},
      {"parallelism.tp=1", "parallelism.tp=2", "parallelism.tp=8"},
      {"parallelism.sp=true", "parallelism.sp=false"},
      {"parallelism.pp=1", "parallelism.pp=2", "parallelism.pp=4"},
      {"training.schedule=1f1b", "training.schedule=gpipe", "training.schedule=zb-h1", "training.schedule=interleaved-1f1b"},
      {"parallelism.vpp=1", "parallelism.vpp=2", "parallelism.vpp=4"},
      {"parallelism.cp=1", "parallelism.cp=2", "parallelism.cp=4"},
      {"parallelism.cp_method=ring", "parallelism.cp_method=all-gather", "parallelism.cp_method=ulysses"},
      {"parallelism.ep=1", "parallelism.ep=2", "parallelism.ep=8"},
      {"parallelism.etp=1", "parallelism.etp=2"},
      {"parallelism.dispatcher=nccl", "parallelism.dispatcher=deepep"},
      {"parallelism.zero=0", "parallelism.zero=1", "parallelism.zero=2", "parallelism.zero=3"},
      {"parallelism.hsdp=", "parallelism.hsdp=4"},
      {"parallelism.order=", "parallelism.order=[tp, cp, ep, pp, dp]", "parallelism.order=[cp, tp, ep, dp, pp]"},
      {"parallelism.account_for_embedding=false", "parallelism.account_for_embedding=true"},
      {"parallelism.account_for_loss=false", "parallelism.account_for_loss=true"},
      {"parallelism.first_stage_layers=", "parallelism.first_stage_layers=4"},
      {"training.micro_batch=1", "training.micro_batch=2"},
      {"training.precision=bf16", "training.precision=fp16", "training.precision=fp8"},
      {"training.grad_dtype=fp32", "training.grad_dtype=bf16", "training.grad_dtype=fp16"},
      {"training.recompute=none", "training.recompute=selective", "training.recompute=full", "training.recompute=selective-op",
       "training.recompute=[norm, mlp, activation]"},
      {"training.recompute_every=", "training.recompute_every=2"},
      {"training.overlap={dp: true}", "training.overlap={dp: false, pp: false}", "training.overlap={tp: true}"},
      {"training.bucket_MB=", "training.bucket_MB=200"},
      {"training.attention=", "training.attention=cudnn", "training.attention=flash-2", "training.attention=flash-3"},
      {"parallelism.expert_axis=folded", "parallelism.expert_axis=own"},
  };
  std::vector<std::string> options;
  for (const std::vector<std::string>& one : choices) {
    // Most stay as they are, or hardly any scenario would be one.
    const bool changed = &one == &choices.front() || std::uniform_int_distribution(0, 3)(random) == 0;
    options.push_back(changed ? one[std::uniform_int_distribution<std::size_t>(0, one.size() - 1)(random)] : one.front());
  }
  return options;
}

TEST(Flags, RandomScenariosThroughBoth) {
  const std::string base =
      "model: llama3-8b\ncluster: {preset: dgx-h100, gpus: 128}\ntraining: {sequence: 2048, global_batch: 512}\n";
  std::mt19937 random(7);
  int valid = 0;
  std::set<std::string> lost_fields;
  for (int draw = 0; draw < 3000 && valid < 250; ++draw) {
    const std::vector<std::string> options = random_options(random);
    Written original;
    try {
      original = written(base, "s.yaml", options);
    } catch (const InputError&) {
      continue;
    }
    ++valid;
    SCOPED_TRACE(testing::PrintToString(options));
    for (const Importer& importer : importers()) expect_round_trip(original, importer);
    for (const Lost& lost : exported_to("megatron", original.scenario).lost) lost_fields.insert(lost.field);
  }
  EXPECT_GE(valid, 100);
  EXPECT_GE(lost_fields.size(), 8);  // so that the draws reach what cannot be expressed
}

Exported megatron(const std::vector<std::string>& options) {
  return exported_to("megatron", parse_scenario(base_text(), "s.yaml", options));
}

// By hand, from megatron/training/arguments.py.
TEST(Flags, MegatronArgumentsOfASmallScenario) {
  EXPECT_EQ(megatron({"parallelism.dp=", "training.recompute=selective"}).text,
            R"(# base for Megatron-Core's pretrain_gpt.py; in a shell: pretrain_gpt.py $(sed 's/#.*//' THIS_FILE)
# with CUDA_DEVICE_MAX_CONNECTIONS=1 in the environment, below Blackwell

# model: inline
--num-layers 8
--hidden-size 512
--ffn-hidden-size 1024
--swiglu
--normalization RMSNorm
--disable-bias-linear
--padded-vocab-size 4096
--untie-embeddings-and-output-weights
--max-position-embeddings 1024
--position-embedding-type rope
--rotary-base 500000

# attention
--num-attention-heads 8
--kv-channels 64
--group-query-attention
--num-query-groups 4

# parallelism
--tensor-model-parallel-size 4
--sequence-parallel
--context-parallel-size 1

# pipeline
--pipeline-model-parallel-size 2

# data parallelism
--use-distributed-optimizer
--overlap-grad-reduce
--overlap-param-gather

# training
--seq-length 1024
--micro-batch-size 1
--global-batch-size 16
--bf16

# recompute
--recompute-granularity selective
--recompute-modules core_attn
)");
}

TEST(Flags, WhatMegatronCannotSayIsListed) {
  const Exported exported = megatron({"training.sync_every=4", "parallelism.zero=0", "parallelism.placement=round-robin"});
  EXPECT_THAT(exported.lost, ElementsAre(testing::Field(&Lost::field, "parallelism.placement"),
                                         testing::Field(&Lost::field, "training.sync_every")));
  EXPECT_THAT(exported.text, HasSubstr("# training.sync_every: "));
}

// As Megatron-LM's examples write them: variables, arrays, continued lines, layers per virtual stage.
TEST(Flags, MegatronFromAShellScript) {
  const std::string script = R"(#!/bin/bash
export CUDA_DEVICE_MAX_CONNECTIONS=1
TP=2   # within a node
SEQ="4096"
MODEL_ARGS=(
    --num-layers 32
    --hidden-size 4096
    --num-attention-heads 32 --swiglu
    --vocab-size 50257
)
torchrun --nproc_per_node 8 pretrain_gpt.py ${MODEL_ARGS[@]} \
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size 4 \
    --num-layers-per-virtual-pipeline-stage=4 --seq-length ${SEQ} --micro-batch-size 1 --global-batch-size 64 --bf16 --lr 1e-4
)";
  const Imported imported = find_importer("megatron")->read(script, "run.sh", 64);
  EXPECT_THAT(imported.ignored, ElementsAre("--nproc_per_node", "--lr"));
  const Scenario scenario =
      read_with(imported.document, written(base_text(), "s.yaml", {"cluster.gpus=64", "parallelism.dp="}), 64);
  EXPECT_EQ(scenario.parallelism.tp, 2);
  EXPECT_EQ(scenario.parallelism.vpp, 2);  // 32 / 4 layers per stage, 4 per virtual stage
  EXPECT_EQ(scenario.parallelism.dp, 8);
  EXPECT_EQ(scenario.training.sequence, 4096);
  EXPECT_EQ(scenario.training.schedule, ScheduleKind::interleaved);
  EXPECT_EQ(scenario.model.vocab, 50432);          // the next multiple of 128 * 2
  EXPECT_EQ(scenario.model.ffn, 10880);            // 4 * 4096 * 2 / 3 in whole 64s
  EXPECT_EQ(scenario.training.overlap_dp, false);  // unless asked for
  EXPECT_EQ(scenario.parallelism.zero, 0);
  EXPECT_EQ(scenario.model.norm, NormKind::layer);
}

void expect_refused(const std::string& text, const std::string& place, const std::string& words) {
  try {
    find_importer("megatron")->read(text, "run.sh", 8);
    FAIL() << "accepted " << text;
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::StartsWith(place));
    EXPECT_THAT(error.what(), HasSubstr(words));
  }
}

TEST(Flags, WrongMegatronArgumentsHaveAPlace) {
  const std::string good =
      "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --micro-batch-size 1 --vocab-size 256\n";
  expect_refused("--hidden-size 64", "run.sh: ", "--num-layers is missing");
  expect_refused(good + "--num-layers many", "run.sh:2:1: ", "--num-layers is `many`");
  expect_refused(good + " --cp-comm-type a2a+p2p", "run.sh:2:2: ", "expected p2p, all_gather or a2a");
  expect_refused(good + "--seq-length $SEQ", "run.sh:2:1: ", "the variable is not set in this file");
  expect_refused(good + "--recompute-granularity selective --recompute-modules everything",
                 "run.sh:2:35: ", "no module `everything`");
  expect_refused(good + "--num-experts 8 --moe-layer-freq [1]*3", "run.sh:2:17: ", "no list of 4 layers");
}

TEST(Flags, LayerPatterns) {
  EXPECT_THAT(evaluate_layer_pattern("([1]*3+[0]*1)*2").value(), ElementsAre(1, 1, 1, 0, 1, 1, 1, 0));
  EXPECT_THAT(evaluate_layer_pattern("[0, 1]").value(), ElementsAre(0, 1));
  for (const char* wrong : {"", "[1", "[1]*", "[1]*99999", "([1]", "1", "[1]]", "[1]**2"})
    EXPECT_FALSE(evaluate_layer_pattern(wrong)) << wrong;
  EXPECT_FALSE(moe_layers_of({1, 1, 0, 1}));
  EXPECT_FALSE(moe_layers_of({0, 0}));
  for (std::int64_t first = 0; first < 5; ++first) {
    for (std::int64_t every = 1; every < 4; ++every) {
      ModelSpec model;
      model.layers = 17;
      model.moe.experts = 8;
      model.moe.first_dense_layers = first;
      model.moe.every = every;
      const std::string pattern = moe_layer_pattern(model);
      if (first == 0) {
        EXPECT_EQ(pattern, std::to_string(every));
        continue;
      }
      const auto layers = evaluate_layer_pattern(pattern).value();
      ASSERT_EQ(layers.size(), 17) << pattern;
      for (std::int64_t layer = 0; layer < 17; ++layer)
        EXPECT_EQ(layers[static_cast<std::size_t>(layer)] == 1, model.moe.in_layer(layer)) << pattern;
      EXPECT_EQ(moe_layers_of(layers)->first_dense_layers, first);
      EXPECT_EQ(moe_layers_of(layers)->every, every);
    }
  }
}

// As TorchTitan's llama3_405b.toml (version 0.2) has it.
TEST(Flags, TorchTitanFromItsOwnConfiguration) {
  const std::string toml = R"([job]
description = "Llama 3 405B training"
[model]
name = "llama3"
flavor = "405B"
converters = ["float8"]
[optimizer]
lr = 8e-5
[training]
local_batch_size = 2
seq_len = 8192
[parallelism]
data_parallel_replicate_degree = 1
data_parallel_shard_degree = -1
tensor_parallel_degree = 8
enable_async_tensor_parallel = true
pipeline_parallel_degree = 1
[activation_checkpoint]
mode = "full"
[compile]
enable = true
components = ["model", "loss"]
)";
  const Imported imported = find_importer("torchtitan")->read(toml, "t.toml", 512);
  EXPECT_THAT(imported.ignored, ElementsAre("optimizer.lr"));
  const Scenario scenario =
      read_with(imported.document,
                written(base_text(), "s.yaml", {"cluster.gpus=512", "parallelism.dp=", "training.global_batch=512"}), 512);
  EXPECT_EQ(scenario.model.layers, 126);
  EXPECT_EQ(scenario.parallelism.dp, 64);
  EXPECT_EQ(scenario.parallelism.zero, 3);
  EXPECT_TRUE(scenario.parallelism.reshard_after_forward);
  EXPECT_TRUE(scenario.training.overlap_tp);
  EXPECT_EQ(scenario.training.precision, DType::f8);
  EXPECT_EQ(scenario.training.global_batch, 128);
  EXPECT_EQ(scenario.training.recompute.every, 1);
  EXPECT_EQ(scenario.software.name, "torchtitan");
}

TEST(Flags, WrongTorchTitanFilesHaveAPlace) {
  const auto refused = [](const std::string& text) -> std::string {
    try {
      find_importer("torchtitan")->read(text, "t.toml", 8);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refused("[model\n"), testing::StartsWith("t.toml:1:7: not TOML"));
  EXPECT_THAT(refused("[model]\nname = \"llama3\"\nflavor = \"9B\""),
              testing::StartsWith("t.toml:3:10: the shape of llama3 9B is not known"));
  EXPECT_THAT(refused("[parallelism]\ntensor_parallel_degree = \"2\""),
              testing::StartsWith("t.toml:2:26: parallelism.tensor_parallel_degree is no whole"));
  EXPECT_THAT(refused("[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = \"DualPipeV\""),
              HasSubstr("t.toml:3:30: the schedule"));
}

TEST(Flags, NcclVariablesOnlyWhereTheyMatter) {
  const auto variables = [](const std::vector<std::string>& options) {
    return exported_to("nccl", parse_scenario(base_text(), "s.yaml", options)).text;
  };
  EXPECT_THAT(variables({}), HasSubstr("\nNCCL_CROSS_NIC=0\n"));
  EXPECT_THAT(variables({"cluster.fabric.rail_optimized=false"}), HasSubstr("\nNCCL_CROSS_NIC=1\n"));
  EXPECT_THAT(variables({"cluster.nvls=false"}), HasSubstr("\nNCCL_NVLS_ENABLE=0\n"));
  EXPECT_THAT(variables({"cluster.nvls=true"}), Not(HasSubstr("NVLS")));
  EXPECT_THAT(variables({"cluster.fabric.routing=ecmp", "cluster.fabric.flows=4"}),
              HasSubstr("\nNCCL_IB_QPS_PER_CONNECTION=4\n"));
  EXPECT_THAT(variables({"cluster.gpus=8", "parallelism.dp=1", "cluster.nvls=true"}), Not(HasSubstr("NCCL_")));
}

}  // namespace
}  // namespace tandem::scenarios::interop_test
