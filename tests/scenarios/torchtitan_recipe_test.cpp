// TorchTitan from 0.3 on: functions of config_registry.py, and what a run saves of its configuration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "runtime/base/input_error.h"
#include "scenarios/interop/formats.h"
#include "scenarios/interop/torchtitan/python_recipe.h"
#include "scenarios/spec/names.h"
#include "tests/scenarios/base_scenario.h"
#include "tests/scenarios/interop_scenario.h"

namespace tandem::scenarios::torchtitan_recipe_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Imported read_titan(const std::string& text, const std::string& file, std::int64_t gpus,
                    std::span<const std::string> environment = {}) {
  return find_importer("torchtitan")->read({.text = text, .file = file, .gpus = gpus, .environment = environment});
}

constexpr const char* registry = R"("""Recipes."""
from typing import cast

from torchtitan.config import CompileConfig, ParallelismConfig, TrainingConfig
from torchtitan.trainer import Trainer

from . import model_registry


def llama3_8b(seq_len: int = 8192) -> Trainer.Config:
    """Of one node."""
    model_spec = model_registry("8B")  # the shape
    return Trainer.Config(
        loss=ChunkedLossWrapper.Config(loss_fn=CrossEntropyLoss.Config(global_vocab_size=decoder_vocab_size(model_spec))),
        model_spec=model_spec,
        training=TrainingConfig(
            num_tokens_per_microbatch_per_dp_rank=2 * seq_len,
            max_context_length=seq_len,
        ),
        parallelism=ParallelismConfig(tensor_parallel_degree=1),
        activation_checkpoint=SelectiveAC.Config(),
    )


def llama3_405b() -> Trainer.Config:
    config = llama3_8b(seq_len=4096)
    config.compile = CompileConfig(
        enable=True, enable_async_tensor_parallel=True
    )
    config.model_spec = model_registry(
        "405B", converters=[MXFP8LinearConverter.Config(model_compile_enabled="model" in config.compile.components)]
    )
    config.parallelism.tensor_parallel_degree = 8
    config.training.num_tokens_per_train_step = 64 * 4096
    config.activation_checkpoint = FullAC.Config()
    return config


def helper(x):
    y = x
)";

TEST(TorchTitanRecipe, OfAFunctionOfTheRegistry) {
  const std::array<std::string, 1> chosen{"CONFIG=llama3_8b"};
  const Scenario scenario = scenario_of(read_titan(registry, "llama3/config_registry.py", 8, chosen), 8);
  EXPECT_EQ(scenario.model.layers, 32);
  EXPECT_EQ(scenario.training.sequence, 8192);
  EXPECT_EQ(scenario.training.micro_batch, 2);
  EXPECT_EQ(scenario.training.global_batch, 16);
  EXPECT_EQ(scenario.parallelism.zero, 3);
  EXPECT_EQ(scenario.training.recompute, selective_op_recompute);
}

TEST(TorchTitanRecipe, FunctionsCallEachOtherAndSetFields) {
  const std::array<std::string, 1> chosen{"CONFIG=llama3_405b"};
  const Imported imported = read_titan(registry, "config_registry.py", 256, chosen);
  const Scenario scenario = scenario_of(imported, 256);
  EXPECT_EQ(scenario.model.layers, 126);
  EXPECT_EQ(scenario.parallelism.tp, 8);
  EXPECT_EQ(scenario.parallelism.dp, 32);
  EXPECT_EQ(scenario.training.sequence, 4096);
  EXPECT_EQ(scenario.training.micro_batch, 2);
  EXPECT_EQ(scenario.training.global_batch, 64);
  EXPECT_EQ(scenario.training.recompute, full_recompute);
  EXPECT_EQ(scenario.training.precision, DType::f8);
  EXPECT_EQ(scenario.training.recipe, Recipe::mxfp8);
  EXPECT_TRUE(scenario.training.overlap_tp);
}

TEST(TorchTitanRecipe, AFileOfSeveralAsksForOne) {
  try {
    read_titan(registry, "llama3/config_registry.py", 8);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("holds 2 recipes, expected --env CONFIG=NAME with one of: llama3_8b, llama3_405b"));
  }
  const std::array<std::string, 1> wrong{"CONFIG=llama3_8c"};
  try {
    read_titan(registry, "llama3/config_registry.py", 8, wrong);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("has no function `llama3_8c`; did you mean `llama3_8b`?"));
  }
}

TEST(TorchTitanRecipe, PythonThatIsWrongHasAPlace) {
  const auto refused = [](const std::string& text) -> std::string {
    try {
      read_titan(text, "r.py", 8);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refused("def f():\n    return Trainer.Config(training=\n"), StartsWith("r.py:"));
  EXPECT_THAT(refused("def f():\n    x = \"open\n    return x\n"), StartsWith("r.py:2:9: a text has no closing quote"));
  EXPECT_THAT(refused("def f():\n    if x:\n        pass\n    return g()\n"),
              HasSubstr("r.py:2:5: expected statements one after the other"));
  EXPECT_THAT(refused("x = 1\n"), HasSubstr("has no function that returns a configuration"));
  EXPECT_THAT(refused("def f():\n    return 3\n"), HasSubstr("returns no call of a configuration class"));
  EXPECT_THAT(refused("def f():\n    return f()\n"), HasSubstr("call each other too deep"));
  EXPECT_THAT(refused("def f():\n    return " + std::string(5000, '(') + "\n"), HasSubstr("nested less deep"));
}

TEST(TorchTitanRecipe, ExpressionsAreFollowed) {
  const YamlNode value = evaluate_python_function(
      "def f():\n    a = [1, 2 * 3, -4]\n    b = C.D(x=a, y=(7 // 2) + 1, z='t' \"u\", on=True and not False, off=None,\n"
      "            w=1 if \"p\" in [\"p\"] else 2, unknown=mystery(3).field)\n    b.x2 = 8_192\n    return b\n",
      "r.py", "f");
  EXPECT_EQ(value.find("_type")->text, "C.D");
  EXPECT_EQ(value.find("x")->items[1].text, "6");
  EXPECT_EQ(value.find("x")->items[2].text, "-4");
  EXPECT_EQ(value.find("y")->text, "4");
  EXPECT_EQ(value.find("z")->text, "tu");
  EXPECT_EQ(value.find("on")->text, "true");
  EXPECT_EQ(value.find("off")->kind, YamlNode::Kind::null);
  EXPECT_EQ(value.find("w")->text, "1");
  EXPECT_EQ(value.find("x2")->text, "8192");
  EXPECT_TRUE(value.find("unknown")->quoted);
}

// As `debug.save_config_file` writes it: the model by name and flavor, classes without their names.
TEST(TorchTitanRecipe, OfADumpedConfiguration) {
  const std::string json = R"({"model_spec": {"name": "qwen3", "flavor": "30B-A3B"},
    "training": {"local_batch_size": 2, "global_batch_size": 64, "seq_len": 4096, "mixed_precision_reduce": "float32"},
    "parallelism": {"data_parallel_shard_degree": -1, "expert_parallel_degree": 8, "enable_sequence_parallel": true,
                    "fsdp_reshard_after_forward": "never"},
    "model_converters": {"converters": [{"recipe_name": null, "filter_fqns": ["output"], "emulate": false}]},
    "activation_checkpoint": {"mode": "selective"}, "compile": {"enable": false}, "metrics": {"log_freq": 10}})";
  const Scenario scenario = scenario_of(read_titan(json, "config.json", 32), 32);
  EXPECT_EQ(scenario.model.moe.experts, 128);
  EXPECT_EQ(scenario.parallelism.ep, 8);
  EXPECT_EQ(scenario.training.micro_batch, 2);
  EXPECT_EQ(scenario.training.global_batch, 64);
  EXPECT_EQ(scenario.training.precision, DType::f8);
  EXPECT_EQ(scenario.training.recipe, Recipe::current);
  EXPECT_FALSE(scenario.parallelism.reshard_after_forward);
  EXPECT_EQ(scenario.training.recompute, selective_op_recompute);
}

TEST(TorchTitanRecipe, OfADumpInTokens) {
  const std::string json = R"({"model_spec": {"name": "llama3", "flavor": "8B"},
    "training": {"num_tokens_per_microbatch_per_dp_rank": 8192, "num_tokens_per_train_step": 262144, "max_context_length": 8192},
    "parallelism": {"data_parallel_shard_degree": 4, "pipeline_parallel_degree": 2, "num_pp_microbatches": 8,
                    "pipeline_parallel_module_fqns_per_model_part": null},
    "activation_checkpoint": {"preserve_rng_state": true}, "compile": null})";
  const Scenario scenario = scenario_of(read_titan(json, "config.json", 8), 8);
  EXPECT_EQ(scenario.training.sequence, 8192);
  EXPECT_EQ(scenario.training.micro_batch, 1);
  EXPECT_EQ(scenario.training.global_batch, 32);
  EXPECT_EQ(scenario.training.recompute, full_recompute);
  std::string wrong = json;
  wrong.replace(wrong.find("262144"), 6, "262145");
  try {
    read_titan(wrong, "config.json", 8);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(),
                StartsWith("config.json:2:94: training.num_tokens_per_train_step is 262145, expected a multiple of the 8192"));
  }
}

// Fields of 0.1 and before, in the sections that they had.
TEST(TorchTitanRecipe, OfOldNames) {
  const std::string toml = R"([model]
name = "llama3"
flavor = "8B"
[training]
batch_size = 4
seq_len = 2048
tensor_parallel_degree = 2
data_parallel_shard_degree = 4
[experimental]
pipeline_parallel_degree = 2
pipeline_parallel_split_points = ["layers.12"]
enable_async_tensor_parallel = true
[float8]
enable_float8_linear = true
[activation_checkpoint]
mode = "none"
)";
  const Imported imported = read_titan(toml, "t.toml", 16);
  EXPECT_THAT(imported.ignored, testing::IsEmpty());
  EXPECT_EQ(find_path(imported.document, "parallelism.pipeline_layout")->text, "Et*12|t*20L");
  const Scenario scenario = scenario_of(imported, 16);
  EXPECT_EQ(scenario.parallelism.tp, 2);
  EXPECT_EQ(scenario.parallelism.dp, 4);
  EXPECT_EQ(scenario.training.global_batch, 16);
  EXPECT_EQ(scenario.training.precision, DType::f8);
  EXPECT_TRUE(scenario.training.overlap_tp);
}

}  // namespace
}  // namespace tandem::scenarios::torchtitan_recipe_test
