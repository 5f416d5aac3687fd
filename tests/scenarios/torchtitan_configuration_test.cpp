// TorchTitan's TOML: as its own repository has it, and where it is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/input_error.h"
#include "scenarios/interop/formats.h"
#include "tests/scenarios/base_scenario.h"
#include "tests/scenarios/interop_scenario.h"

namespace tandem::scenarios::torchtitan_configuration_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// As TorchTitan's llama3_405b.toml (version 0.2) has it.
TEST(TorchTitanConfiguration, OfItsOwn405B) {
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
  const Imported imported = find_importer("torchtitan")->read({.text = toml, .file = "t.toml", .gpus = 512});
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

TEST(TorchTitanConfiguration, OfModulesByModelPart) {
  const std::string toml = R"([parallelism]
data_parallel_shard_degree = 2
pipeline_parallel_degree = 2
pipeline_parallel_schedule = "Interleaved1F1B"
module_fqns_per_model_part = [["tok_embeddings"], ["layers.0", "layers.1", "layers.2"], [], ["layers.3", "norm", "output"]]
)";
  const Imported imported = find_importer("torchtitan")->read({.text = toml, .file = "t.toml", .gpus = 4});
  const YamlNode& parallelism = *imported.document.find("parallelism");
  EXPECT_EQ(parallelism.find("pipeline_layout")->text, "E|t*3||tL");
  EXPECT_EQ(parallelism.find("vpp")->text, "2");
}

TEST(TorchTitanConfiguration, HasAPlaceWhereItIsWrong) {
  const auto refused = [](const std::string& text) -> std::string {
    try {
      find_importer("torchtitan")->read({.text = text, .file = "t.toml", .gpus = 8});
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refused("[model\n"), testing::StartsWith("t.toml:1:7: not TOML"));
  const Imported unknown =
      find_importer("torchtitan")->read({.text = "[model]\nname = \"llama3\"\nflavor = \"9B\"", .file = "t.toml", .gpus = 8});
  ASSERT_EQ(unknown.missing.size(), 1);
  EXPECT_EQ(unknown.missing.front().place.text(), "t.toml:3:10");
  EXPECT_THAT(unknown.missing.front().sentence, testing::StartsWith("the shape of llama3 9B is not known"));
  EXPECT_THAT(refused("[parallelism]\ntensor_parallel_degree = \"2\""),
              testing::StartsWith("t.toml:2:26: parallelism.tensor_parallel_degree is no whole"));
  EXPECT_THAT(refused("[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = \"DualPipeV\""),
              HasSubstr("t.toml:3:30: the schedule"));
  EXPECT_THAT(refused("[parallelism]\npipeline_parallel_degree = 2\nmodule_fqns_per_model_part = [[], [], []]"),
              testing::StartsWith("t.toml:3:30: module_fqns_per_model_part has 3 lists of modules, expected a multiple of"));
  EXPECT_THAT(refused("[parallelism]\npipeline_parallel_degree = 2\nmodule_fqns_per_model_part = [[1], []]"),
              HasSubstr("is no list of lists of texts"));
}

}  // namespace
}  // namespace tandem::scenarios::torchtitan_configuration_test
