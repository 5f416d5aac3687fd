// Megatron-LM's arguments: as they are written, as shell scripts have them, and where they are wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/input_error.h"
#include "scenarios/interop/formats.h"
#include "scenarios/interop/megatron/layer_pattern.h"
#include "scenarios/reading/load.h"
#include "scenarios/spec/moe_layers.h"
#include "tests/scenarios/base_scenario.h"
#include "tests/scenarios/interop_scenario.h"

namespace tandem::scenarios::megatron_arguments_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Exported megatron(const std::vector<std::string>& options) {
  return find_exporter("megatron")->write({parse_scenario(base_text(), "s.yaml", options), {}});
}

// By hand, from megatron/training/arguments.py.
TEST(MegatronArguments, OfASmallScenario) {
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
--hidden-dropout 0
--attention-dropout 0

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

TEST(MegatronArguments, ListWhatTheyCannotSay) {
  const Exported exported = megatron({"training.sync_every=4", "parallelism.zero=0", "parallelism.placement=round-robin"});
  EXPECT_THAT(exported.lost, ElementsAre(testing::Field(&Lost::field, "parallelism.placement"),
                                         testing::Field(&Lost::field, "training.sync_every")));
  EXPECT_THAT(exported.text, HasSubstr("# training.sync_every: "));
}

// A rank's share of a sequence is what Megatron-Core makes groups of context-parallel ranks by.
TEST(MegatronArguments, PackingOfDocuments) {
  const std::vector<std::string> packed{"training.documents.length=100", "training.documents.packing=best-fit",
                                        "parallelism.dp=2", "parallelism.cp=2"};
  const auto with = [&](const std::string& more) {
    std::vector<std::string> overrides = packed;
    overrides.push_back(more);
    return megatron(overrides).text;
  };
  const std::string dynamic = with("parallelism.dynamic_cp=true"), balanced = with("training.documents.balance=attention");
  EXPECT_THAT(dynamic, HasSubstr("--dynamic-context-parallel\n--sequence-packing-scheduler default_dynamic_cp\n"
                                 "--max-seqlen-per-dp-cp-rank 512\n"));
  EXPECT_THAT(balanced, HasSubstr("--sequence-packing-scheduler dp_balanced\n--max-seqlen-per-dp-cp-rank 512\n"));
  EXPECT_THAT(balanced, testing::Not(HasSubstr("--dynamic-context-parallel")));
  EXPECT_THAT(with("training.documents.balance=none"), testing::Not(HasSubstr("--sequence-packing-scheduler")));
}

// As Megatron-LM's examples write them: variables, arrays, continued lines, layers per virtual stage.
TEST(MegatronArguments, FromAShellScript) {
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
  const Imported imported = find_importer("megatron")->read({.text = script, .file = "run.sh", .gpus = 64});
  EXPECT_THAT(imported.ignored, ElementsAre("--lr"));
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
    find_importer("megatron")->read({.text = text, .file = "run.sh", .gpus = 8});
    FAIL() << "accepted " << text;
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::StartsWith(place));
    EXPECT_THAT(error.what(), HasSubstr(words));
  }
}

TEST(MegatronArguments, FromALayoutThatSaysHowManyChunksThereAre) {
  const Imported imported =
      find_importer("megatron")
          ->read({.text =
                      "--num-layers 61 --mtp-num-layers 1 --hidden-size 64 --num-attention-heads 4 --seq-length 64 "
                      "--micro-batch-size 1\n"
                      "--vocab-size 256 --pipeline-model-parallel-size 8 --pipeline-model-parallel-layout 'Et*3|(tt|)*29,m|L'\n",
                  .file = "run.sh",
                  .gpus = 8});
  const YamlNode& parallelism = *imported.document.find("parallelism");
  EXPECT_EQ(parallelism.find("vpp")->text, "4");
  EXPECT_EQ(parallelism.find("pipeline_layout")->text, "Et*3|(tt|)*29,m|L");
  EXPECT_EQ(imported.document.find("training")->find("schedule")->text, "interleaved-1f1b");
}

TEST(MegatronArguments, SayWhichRanksDealOutHeads) {
  const Imported imported =
      find_importer("megatron")
          ->read({.text = "--num-layers 4 --hidden-size 64 --num-attention-heads 8 --seq-length 64 --micro-batch-size 1 "
                          "--vocab-size 256\n"
                          "--context-parallel-size 8 --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 2 4\n",
                  .file = "run.sh",
                  .gpus = 8});
  const YamlNode& parallelism = *imported.document.find("parallelism");
  EXPECT_EQ(parallelism.find("cp_method")->text, "ulysses-ring");
  EXPECT_EQ(parallelism.find("cp_ulysses")->text, "2");
  const Exported exported = megatron({"parallelism.tp=1", "parallelism.pp=1", "parallelism.dp=4", "parallelism.cp=8",
                                      "parallelism.cp_method=ulysses-ring", "parallelism.cp_ulysses=2"});
  EXPECT_THAT(exported.text, HasSubstr("--cp-comm-type a2a+p2p"));
  EXPECT_THAT(exported.text, HasSubstr("--hierarchical-context-parallel-sizes 2 4"));
}

TEST(MegatronArguments, HaveAPlaceWhereTheyAreWrong) {
  const std::string good =
      "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --micro-batch-size 1 --vocab-size 256\n";
  expect_refused("--hidden-size 64", "run.sh: ", "--num-layers is missing");
  expect_refused(good + "--num-layers many", "run.sh:2:1: ", "--num-layers is `many`");
  expect_refused(good + " --cp-comm-type star", "run.sh:2:2: ", "expected p2p, all_gather, a2a or a2a+p2p");
  expect_refused(good + " --context-parallel-size 4 --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 2 3",
                 "run.sh:", "two sizes whose product is --context-parallel-size");
  expect_refused(good + "--seq-length $SEQ",
                 "run.sh:2:1: ", "--seq-length depends on $SEQ, which nothing sets, expected --env SEQ=VALUE");
  expect_refused(good + "--recompute-granularity selective --recompute-modules everything",
                 "run.sh:2:35: ", "no module `everything`");
  expect_refused(good + "--pipeline-model-parallel-layout 'Et|txL'",
                 "run.sh:2:1: ", "the layout has 'x', expected E (embedding)");
  expect_refused(good + "--num-experts 8 --moe-layer-freq [1]*3", "run.sh:2:17: ", "no list of 4 layers");
}

TEST(LayerPatterns, AreReadAndWritten) {
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

}  // namespace
}  // namespace tandem::scenarios::megatron_arguments_test
