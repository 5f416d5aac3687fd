// DeepSpeed's JSON, which says how a model is trained and not which.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/base/input_error.h"
#include "scenarios/interop/formats.h"
#include "scenarios/interop/import_scenario.h"
#include "scenarios/reading/load.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::scenarios::deepspeed_test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

Imported read_deepspeed(const std::string& text, std::int64_t gpus = 8, std::span<const std::string> environment = {}) {
  return find_importer("deepspeed")->read({.text = text, .file = "ds.json", .gpus = gpus, .environment = environment});
}

std::string value_at(const Imported& imported, const std::string& path) {
  const YamlNode* node = find_path(imported.document, path);
  return node == nullptr ? "none" : node->text;
}

TEST(DeepSpeed, TwoSizesOfABatchSayTheThird) {
  const std::string zero = R"("zero_optimization": {"stage": 1}, "bf16": {"enabled": true}})";
  const Imported whole = read_deepspeed(R"({"train_batch_size": 256, "train_micro_batch_size_per_gpu": 16, )" + zero);
  EXPECT_EQ(value_at(whole, "training.global_batch"), "256");
  EXPECT_EQ(value_at(whole, "training.micro_batch"), "16");
  const Imported steps = read_deepspeed(R"({"train_batch_size": 256, "gradient_accumulation_steps": 4, )" + zero);
  EXPECT_EQ(value_at(steps, "training.micro_batch"), "8");  // 256 / (4 * 8)
  const Imported parts = read_deepspeed(R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, )" + zero);
  EXPECT_EQ(value_at(parts, "training.global_batch"), "64");
  const Imported all = read_deepspeed(
      R"({"train_batch_size": 256, "train_micro_batch_size_per_gpu": 16, "gradient_accumulation_steps": 2, )" + zero, 0);
  EXPECT_EQ(value_at(all, "parallelism.dp"), "8");  // 256 / (16 * 2)
  EXPECT_THAT(all.missing, testing::SizeIs(1));
}

TEST(DeepSpeed, WhatTheTrainerFillsInIsAssumedAndListed) {
  const Imported imported = read_deepspeed(R"({"gradient_accumulation_steps": "auto", "train_micro_batch_size_per_gpu": "auto",
    "gradient_clipping": "auto", "zero_optimization": {"stage": 2, "overlap_comm": true, "reduce_bucket_size": "auto"},
    "fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"}})");
  EXPECT_THAT(imported.ignored, IsEmpty());
  EXPECT_EQ(value_at(imported, "parallelism.zero"), "2");
  EXPECT_EQ(value_at(imported, "training.precision"), "bf16");
  EXPECT_EQ(value_at(imported, "training.global_batch"), "8");
  for (const char* what :
       {"training.micro_batch", "training.global_batch", "training.precision", "training.sequence", "training.bucket_MB"})
    EXPECT_THAT(imported.assumed, Contains(HasSubstr(std::string("(--set ") + what + ")")));
}

TEST(DeepSpeed, StatesOnTheHostAreOffloadedAndWeightsAreNot) {
  const Imported imported = read_deepspeed(R"({"train_micro_batch_size_per_gpu": 1, "fp16": {"enabled": true},
    "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "pin_memory": true},
    "offload_param": {"device": "cpu"}, "reduce_bucket_size": 2e8}})");
  EXPECT_EQ(value_at(imported, "training.offload.optimizer"), "1");
  EXPECT_EQ(value_at(imported, "training.precision"), "fp16");
  EXPECT_EQ(value_at(imported, "training.overlap.dp"), "true");  // with stage 3 unless told otherwise
  EXPECT_EQ(value_at(imported, "training.bucket_MB"), "400");    // 2e8 elements of 2 bytes
  EXPECT_THAT(imported.notes, testing::ElementsAre(HasSubstr("offload_param keeps weights on the host")));
}

// Megatron-DeepSpeed's templates: scripts put values in the place of words.
constexpr const char* a_template = R"({
  "train_batch_size" : CONFIG_BATCH_SIZE,  // of all ranks
  "train_micro_batch_size_per_gpu": ${MICRO},
  /* stage,
     by the script */ "zero_optimization": {"stage": ZERO_STAGE},
  "bf16": {"enabled": CONFIG_BF16_ENABLED}
})";

TEST(DeepSpeed, TemplatesAreFilledInOrRefusedWithTheirPlaceholders) {
  const std::array<std::string, 4> environment{"CONFIG_BATCH_SIZE=64", "MICRO=4", "ZERO_STAGE=1", "CONFIG_BF16_ENABLED=true"};
  const Imported imported = read_deepspeed(a_template, 8, environment);
  EXPECT_EQ(value_at(imported, "training.global_batch"), "64");
  EXPECT_EQ(value_at(imported, "training.micro_batch"), "4");
  EXPECT_EQ(value_at(imported, "parallelism.zero"), "1");
  try {
    read_deepspeed(a_template, 8, std::span(environment).first(1));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), StartsWith("ds.json:3:37: is a template, whose placeholders have no values: MICRO, ZERO_STAGE, "
                                         "CONFIG_BF16_ENABLED; expected --env NAME=VALUE"));
  }
}

TEST(DeepSpeed, IsRefusedWithAPlace) {
  const auto refused = [](const std::string& text) -> std::string {
    try {
      read_deepspeed(text);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refused(R"({"train_batch_size": 100, "train_micro_batch_size_per_gpu": 16})"),
              StartsWith("ds.json:1:22: train_batch_size is 100, expected 16 sequences on each of 8 data-parallel ranks"));
  EXPECT_THAT(refused(R"({"train_batch_size": 8, "zero_optimization": {"stage": 4}})"),
              StartsWith("ds.json:1:56: zero_optimization.stage is 4"));
  EXPECT_THAT(refused(R"({"train_batch_size": 8, "fp16": {"enabled": true}, "bf16": {"enabled": true}})"),
              HasSubstr("both fp16 and bf16"));
  EXPECT_THAT(refused(R"({"model_type": "llama"})"), StartsWith("ds.json: has neither zero_optimization"));
  EXPECT_THAT(refused(R"({"train_batch_size": [8]})"), HasSubstr("train_batch_size is no whole number"));
  EXPECT_THAT(refused(R"({"train_batch_size": 8,,})"), HasSubstr("wrong JSON"));
}

TEST(DeepSpeed, TheModelComesFromTheCommandLine) {
  const TemporaryFolder folder;
  const std::string path = folder / "ds.json";
  std::ofstream(path) << R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2,
    "zero_optimization": {"stage": 1}, "bf16": {"enabled": true}})";
  const Importer& importer = *find_importer("deepspeed");
  try {
    import_scenario(path, importer, {.cluster = "dgx-h100", .gpus = 8, .overrides = {}});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("says nothing of the model, expected --set model=NAME"));
  }
  const ImportedScenario imported = import_scenario(
      path, importer, {.cluster = "dgx-h100", .gpus = 8, .overrides = {"model=llama3-8b", "training.sequence=2048"}});
  const Scenario scenario = parse_scenario(imported.yaml, "back.yaml", {});
  EXPECT_EQ(scenario.model.layers, 32);
  EXPECT_EQ(scenario.training.sequence, 2048);
  EXPECT_EQ(scenario.training.micro_batches(scenario.parallelism), 4);  // 64 / (2 * 8)
}

// What it has words for is never among what is lost; tests/scenarios/interop_test.cpp holds the values.
TEST(DeepSpeed, ExportsWhatItHasWordsFor) {
  const Scenario scenario = parse_scenario(
      "name: s\nmodel: llama3-8b\ncluster: {preset: dgx-h100, gpus: 64}\nparallelism: {tp: 2, zero: 2}\n"
      "training: {sequence: 4096, micro_batch: 2, global_batch: 256, precision: bf16, grad_dtype: bf16, bucket_MB: 100}\n",
      "s.yaml", {});
  const Exported exported = find_exporter("deepspeed")->write({scenario, {}});
  for (const Lost& lost : exported.lost)
    EXPECT_THAT(
        (std::array<std::string, 8>{"parallelism.tp", "parallelism.dp", "parallelism.zero", "training.micro_batch",
                                    "training.global_batch", "training.precision", "training.grad_dtype", "training.bucket_MB"}),
        Not(Contains(lost.field)));
  const nlohmann::json json = nlohmann::json::parse(exported.text);
  EXPECT_EQ(json["train_batch_size"], 256);
  EXPECT_EQ(json["gradient_accumulation_steps"], 256 / (2 * 32));
  EXPECT_EQ(json["zero_optimization"]["reduce_bucket_size"], 50'000'000);
  EXPECT_EQ(json["tensor_parallel"]["autotp_size"], 2);
}

}  // namespace
}  // namespace tandem::scenarios::deepspeed_test
