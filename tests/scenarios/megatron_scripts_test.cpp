// Launch scripts and test recipes of Megatron-LM, as people write them. Those in tests/scenarios/megatron are our own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "runtime/base/input_error.h"
#include "runtime/base/text_file.h"
#include "scenarios/interop/formats.h"
#include "scenarios/interop/import_scenario.h"
#include "scenarios/reading/load.h"
#include "tests/scenarios/base_scenario.h"
#include "tests/scenarios/interop_scenario.h"

namespace tandem::scenarios::megatron_scripts_test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string file_of(const std::string& name) { return TANDEM_SOURCE_DIR "/tests/scenarios/megatron/" + name; }

Imported import_file(const std::string& name, const std::vector<std::string>& environment = {}, std::int64_t gpus = 0) {
  const std::string path = file_of(name);
  return find_importer("megatron")
      ->read({.text = read_text_file(path, "a script"), .file = path, .gpus = gpus, .environment = environment});
}

Imported import_text(const std::string& text, const std::vector<std::string>& environment = {}, std::int64_t gpus = 8) {
  return find_importer("megatron")->read({.text = text, .file = "run.sh", .gpus = gpus, .environment = environment});
}

std::string value(const Imported& imported, const std::string& path) {
  const YamlNode* node = find_path(imported.document, path);
  return node == nullptr ? "nothing" : node->text;
}

template <typename Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

const std::string sizes = "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --micro-batch-size 1 --bf16";

// A model in another file, conditions on what a command prints, Slurm's variables by #SBATCH, defaults, a here-document.
TEST(MegatronScripts, WithASourcedModel) {
  const Imported imported = import_file("sourced.sh");
  EXPECT_EQ(value(imported, "model.layers"), "4");
  EXPECT_EQ(value(imported, "model.moe.first_dense_layers"), "1");
  EXPECT_EQ(value(imported, "model.vocab"), "1024");  // 1000 in whole 128 * 2
  EXPECT_EQ(value(imported, "parallelism.tp"), "2");
  EXPECT_EQ(value(imported, "parallelism.dp"), "4");  // 2 nodes of 4, by tp
  EXPECT_THAT(imported.ignored, Contains("--save"));
  EXPECT_THAT(imported.notes, Contains(HasSubstr("--nvlink-there")));
  EXPECT_THAT(imported.assumed, Contains(HasSubstr("$MORE adds no arguments")));
  EXPECT_THAT(imported.assumed, Contains(HasSubstr("$WANDB_KEY is empty")));
  EXPECT_EQ(value(import_file("sourced.sh", {"TP=1"}), "parallelism.dp"), "8");
}

// Without the positional arguments nothing is guessed: the first that is needed is asked for, with the others.
TEST(MegatronScripts, ThatTakeThemFromTheirArguments) {
  const std::string refused = refusal([] { import_file("positional.sh"); });
  EXPECT_THAT(refused, HasSubstr("positional.sh:"));
  EXPECT_THAT(refused, HasSubstr("--env 2=VALUE"));
  EXPECT_THAT(refused, HasSubstr("such for 1, 3"));

  const Imported large = import_file("positional.sh", {"1=large", "2=2", "3=fp8"});
  EXPECT_EQ(value(large, "model.layers"), "8");
  EXPECT_EQ(value(large, "model.moe.experts"), "4");
  EXPECT_EQ(value(large, "model.moe.every"), "1");
  EXPECT_EQ(value(large, "parallelism.sp"), "true");
  EXPECT_EQ(value(large, "training.overlap.tp"), "true");
  EXPECT_EQ(value(large, "training.precision"), "fp8");
  EXPECT_EQ(value(large, "training.recipe"), "blockwise");
  EXPECT_EQ(value(large, "parallelism.dp"), "4");

  const Imported small = import_file("positional.sh", {"1=small", "2=1", "3=bf16"});
  EXPECT_EQ(value(small, "model.layers"), "4");
  EXPECT_EQ(value(small, "model.moe"), "nothing");
  EXPECT_EQ(value(small, "parallelism.sp"), "false");
  EXPECT_THAT(refusal([] { import_file("positional.sh", {"1=small", "2=1", "3=int4"}); }), HasSubstr("the script ends in line"));
}

TEST(MegatronScripts, AsYaml) {
  EXPECT_THAT(refusal([] { import_file("recipe.yaml", {}, 2); }), HasSubstr("--global-batch-size depends on $GBS"));
  const Imported imported = import_file("recipe.yaml", {"GBS=8"}, 2);
  EXPECT_EQ(value(imported, "model.layers"), "4");
  EXPECT_EQ(value(imported, "training.sequence"), "128");
  EXPECT_EQ(value(imported, "training.global_batch"), "8");
  EXPECT_EQ(value(imported, "parallelism.vpp"), "2");   // four stages on two ranks
  EXPECT_EQ(value(imported, "model.vocab"), "129280");  // 128815 tokens in whole 3232s
  EXPECT_THAT(imported.assumed, Contains(HasSubstr("the tokenizer of DeepSeek-V3 has 128,815 tokens, in whole 3,232s")));
  EXPECT_EQ(find_path(imported.document, "training.recompute")->items.size(), 2);
  EXPECT_THAT(imported.ignored, Not(Contains("--finetune")));  // false is none
  EXPECT_THAT(refusal([] { import_text("MODEL_ARGS:\n  num-layers: 4\n"); }), HasSubstr("run.sh:2:3: num-layers in MODEL_ARGS"));
  EXPECT_THAT(refusal([] { import_text("MODEL_ARGS: 4\n"); }), HasSubstr("MODEL_ARGS is no mapping"));
}

TEST(MegatronScripts, GetTheVocabularyFromTheTokenizer) {
  const auto vocabulary = [](const std::string& more) { return value(import_text(sizes + " " + more), "model.vocab"); };
  EXPECT_EQ(vocabulary("--tokenizer-type GPT2BPETokenizer"), "50304");  // Megatron-LM's own example of padding
  EXPECT_EQ(vocabulary("--tokenizer-type GPT2BPETokenizer --tensor-model-parallel-size 8"), "51200");
  EXPECT_EQ(vocabulary("--tokenizer-type HuggingFaceTokenizer --tokenizer-model Qwen/Qwen3-8B"), "151680");
  EXPECT_EQ(vocabulary("--tokenizer-type NullTokenizer --vocab-size 1023"), "1024");
  EXPECT_EQ(vocabulary("--tokenizer-type NullTokenizer --vocab-size 1024"), "1152");  // one more ends documents
  EXPECT_EQ(vocabulary("--vocab-size 1024"), "1024");
  EXPECT_EQ(vocabulary("--padded-vocab-size 1000"), "1000");
  EXPECT_EQ(vocabulary("--patch-tokenizer-type Qwen2Tokenizer --extra-vocab-size 293"), "151936");
  const Imported unknown = import_text(sizes + " --tokenizer-type SentencePieceTokenizer --tokenizer-model a.model");
  ASSERT_EQ(unknown.missing.size(), 1);
  EXPECT_EQ(unknown.missing[0].field, "model.vocab");
  EXPECT_THAT(unknown.missing[0].sentence, HasSubstr("--set model.vocab=N"));
}

TEST(MegatronScripts, LackWhatOnlyTheUserKnows) {
  const std::string path = testing::TempDir() + "megatron_lacks.sh";
  std::ofstream(path) << sizes << "\n";
  const Importer& importer = *find_importer("megatron");
  EXPECT_THAT(refusal([&] { import_scenario(path, importer, {.cluster = {}, .gpus = 8, .overrides = {}}); }),
              HasSubstr("expected --set model.vocab=N"));
  const ImportedScenario imported = import_scenario(path, importer, {.cluster = {}, .gpus = 8, .overrides = {"model.vocab=512"}});
  EXPECT_THAT(imported.yaml, HasSubstr("vocab: 512"));
}

TEST(MegatronScripts, SayWhenTheirGpusDoNotFit) {
  const std::string script = "torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py " + sizes + " --vocab-size 128";
  EXPECT_EQ(value(import_text(script, {}, 0), "parallelism.dp"), "8");
  EXPECT_EQ(value(import_text(script, {}, 64), "parallelism.dp"), "nothing");  // the user's number goes before
  EXPECT_THAT(refusal([&] { import_text(script + " --tensor-model-parallel-size 16", {}, 0); }),
              HasSubstr("--nnodes 1, --nproc_per_node 8 starts 8 GPUs, which is no multiple of tp 16 * pp 1 * cp 1 = 16"));
  EXPECT_THAT(refusal([&] {
                import_text(script + " --num-experts 16 --moe-token-dispatcher-type alltoall --expert-model-parallel-size 16", {},
                            0);
              }),
              HasSubstr("no multiple of the experts' ep * etp * pp = 16"));
}

// Megatron-LM's softmax before the choice is one of softmax alone; with sigmoid the flag says nothing.
TEST(MegatronScripts, HaveNoSoftmaxBeforeASigmoid) {
  const std::string experts =
      sizes + " --vocab-size 128 --num-experts 4 --moe-token-dispatcher-type alltoall --moe-router-pre-softmax ";
  EXPECT_EQ(value(import_text(experts), "model.moe.pre_softmax"), "true");
  EXPECT_EQ(value(import_text(experts + "--moe-router-score-function sigmoid"), "model.moe.pre_softmax"), "nothing");
}

TEST(MegatronScripts, OfOtherModelsAreRefused) {
  EXPECT_THAT(refusal([] { import_text("torchrun pretrain_bert.py " + sizes + " --vocab-size 128"); }),
              HasSubstr("pretrain_bert.py trains another kind of model"));
  EXPECT_THAT(refusal([] { import_text("torchrun pretrain_mamba.py " + sizes + " --vocab-size 128"); }),
              HasSubstr("expected --hybrid-override-pattern"));
}

TEST(MegatronScripts, TellWhatTheScenarioLacks) {
  const Imported imported = import_text(sizes + " --vocab-size 128 --lr 1e-4 --moe-shared-expert-overlap --no-such-argument 3");
  EXPECT_THAT(imported.ignored, testing::ElementsAre("--lr"));
  EXPECT_THAT(imported.notes, Contains(HasSubstr("--moe-shared-expert-overlap: shared experts run beside the exchange")));
  EXPECT_THAT(imported.notes, Contains(HasSubstr("not known here, and left out: --no-such-argument")));
  EXPECT_THAT(refusal([] { import_text(sizes + " --vocab-size 128 --retro-add-retriever"); }),
              HasSubstr("Retro is another model"));
}

TEST(MegatronScripts, OffloadAndCaptureAsTheyDoToday) {
  const Imported imported = import_text(sizes +
                                        " --vocab-size 128 --optimizer-cpu-offload --optimizer-offload-fraction 0.5"
                                        " --overlap-cpu-optimizer-d2h-h2d --use-precision-aware-optimizer"
                                        " --cuda-graph-impl transformer_engine --cuda-graph-scope attn moe_router");
  EXPECT_EQ(value(imported, "training.offload.optimizer"), "0.5");
  EXPECT_EQ(value(imported, "training.offload.overlap_optimizer"), "true");
  EXPECT_EQ(value(imported, "training.cuda_graph"), "attention");
  EXPECT_THAT(imported.notes, IsEmpty());
  EXPECT_EQ(value(import_text(sizes + " --vocab-size 128 --cpu-offloading-num-layers 2"), "training.offload.activations"), "2");
}

// What is exported comes back.
TEST(MegatronScripts, OffloadingRoundTrips) {
  const Written original =
      written(base_text(), "s.yaml",
              {"training.offload={optimizer: 0.5, overlap_optimizer: true}", "cluster.host={link_GBps: 50, memory_GBps: 400}"});
  const Exported exported = find_exporter("megatron")->write({original.scenario, {}});
  EXPECT_THAT(exported.text, HasSubstr("--use-precision-aware-optimizer\n"));
  const Scenario back = read_with(import_text(exported.text, {}, original.scenario.parallelism.world_size()).document, original,
                                  original.scenario.parallelism.world_size());
  EXPECT_EQ(back.training.offload.optimizer, 0.5);
  EXPECT_TRUE(back.training.offload.overlap_optimizer);
}

TEST(MegatronScripts, AreRefusedWhereTheyStartNoTraining) {
  EXPECT_THAT(refusal([] { import_text("echo hello\n"); }), HasSubstr("run.sh: no command of the script starts training"));
  EXPECT_THAT(refusal([] { import_text("source models/none.sh\npython train.py ${ARGS[@]}\n"); }),
              HasSubstr("line 1 reads `models/none.sh`"));
  EXPECT_THAT(refusal([] { import_text("if true; then\necho\n"); }),
              HasSubstr("run.sh:3:1: found the end in a shell script, expected `fi`"));
  EXPECT_THAT(refusal([] { import_text("A=(1 2\n"); }), HasSubstr("run.sh:1:3: nothing closes the array A"));
  EXPECT_THAT(refusal([] { import_text("echo \"a\n"); }), HasSubstr("run.sh:1:6: nothing closes this quote"));
  EXPECT_THAT(refusal([] { import_text("echo $((1 / 0))\n"); }), HasSubstr("divides by zero"));
  EXPECT_THAT(refusal([] { import_text("f() { f; }\nf\n"); }), HasSubstr("more than 40 deep"));
  EXPECT_THAT(refusal([] { import_text("while true; do :; done\n"); }), HasSubstr("more than 200,000 steps"));
  // Each of these copies all that it has so far at each turn.
  for (const char* turn : {"A+=(x)", "A=(\"${A[@]}\" x)", "A[$((I++))]=x", "((A[I++] = I))", "A+=xxxxxxxxxxxxxxxxxxxx",
                           "B+=x; A=$B", "A+=(x); (true)", "A+=(x); if [ \"$UNKNOWN\" = 1 ]; then B=1; fi", "A+=(x); B=${A[-1]}"})
    EXPECT_THAT(refusal([&] { import_text("while true; do " + std::string(turn) + "; done\n"); }),
                HasSubstr("more than 200,000 steps"))
        << turn;
  EXPECT_THAT(refusal([] { import_text("A=aaaaaaaa\nfor i in 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9; do A=$A$A; done\n"); }),
              HasSubstr("grows beyond 1 MiB"));
  EXPECT_THAT(refusal([] { import_text("echo a", {"TP"}); }), HasSubstr("--env: `TP` is no variable with its value"));
}

TEST(MegatronScripts, FuseTheLossByTransformerEngine) {
  const std::string fused = sizes + " --vocab-size 1000 --cross-entropy-loss-fusion";
  EXPECT_EQ(value(import_text(fused + " --cross-entropy-fusion-impl te"), "training.cross_entropy_fusion"), "true");
  EXPECT_EQ(value(import_text(sizes + " --vocab-size 1000"), "training.cross_entropy_fusion"), "nothing");
  const Imported by_pytorch = import_text(fused);
  EXPECT_EQ(value(by_pytorch, "training.cross_entropy_fusion"), "nothing");
  EXPECT_THAT(by_pytorch.notes, testing::Contains(HasSubstr("the loss is fused by PyTorch's compiler; here it is not")));
}

}  // namespace
}  // namespace tandem::scenarios::megatron_scripts_test
