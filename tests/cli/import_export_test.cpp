#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/run_command.h"

namespace tandem::cli::import_export_test {
namespace {

using testing::HasSubstr;

std::string path_of(const std::string& name) { return testing::TempDir() + "import_export_" + name; }

TEST(ImportExport, ThereAndBackSimulatesTheSameStep) {
  const std::string arguments = path_of("args.txt"), back = path_of("back.yaml");
  ASSERT_EQ(run_tandem({"export", scenario_file("llama3-8b-64"), "--to", "megatron", "--out", arguments}).exit_code, 0);
  ASSERT_EQ(run_tandem({"import", arguments, "--from", "megatron", "--gpus", "64", "--out", back}).exit_code, 0);
  const CommandResult original = run_tandem(
      {"simulate", scenario_file("llama3-8b-64"), "--set", "training.framework=megatron-core", "--set", "name=x", "--json", "-"});
  const CommandResult imported = run_tandem({"simulate", back, "--set", "name=x", "--json", "-"});
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  const auto step_time = [](const std::string& json) { return json.substr(json.find("\"step_time_s\""), 40); };
  EXPECT_EQ(step_time(imported.out), step_time(original.out));
}

TEST(ImportExport, WhatIsLostIsToldOnStandardError) {
  const CommandResult result = run_tandem({"export", scenario_file("deepseek-v3-2k"), "--to", "megatron"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("tandem: not expressed: training.schedule: "));
  EXPECT_THAT(result.out, HasSubstr("\n--decoder-first-pipeline-num-layers 3\n"));
}

TEST(ImportExport, ACompleteScenarioStandsAlone) {
  const std::string complete = path_of("complete.yaml");
  ASSERT_EQ(run_tandem({"export", scenario_file("llama3-8b-64"), "--to", "scenario", "--out", complete}).exit_code, 0);
  const CommandResult original = run_tandem({"simulate", scenario_file("llama3-8b-64"), "--json", "-"});
  const CommandResult alone = run_tandem({"simulate", complete, "--json", "-", "--set", "name=llama3-8b-64"});
  const auto step_time = [](const std::string& json) { return json.substr(json.find("\"step_time_s\""), 40); };
  EXPECT_EQ(step_time(alone.out), step_time(original.out));
}

TEST(ImportExport, AConfigOfHuggingFaceIsImportedOrNamedInAScenario) {
  const std::string config = TANDEM_SOURCE_DIR "/tests/scenarios/hf/qwen2.5-7b.json", imported = path_of("qwen.yaml");
  const CommandResult result = run_tandem({"import", config, "--from", "hf", "--gpus", "64", "--out", imported});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "tandem: assumed: a cluster of dgx-h100, as the file names none (--cluster)\n");
  const std::string lacks = TANDEM_SOURCE_DIR "/tests/scenarios/hf/llama4-scout.json";
  EXPECT_THAT(run_tandem({"import", lacks, "--from", "hf", "--gpus", "64", "--out", path_of("llama4.yaml")}).err,
              HasSubstr("tandem: warning: " + lacks + ":21:20: vision_config: the encoder of images is left out"));
  const CommandResult of_import = run_tandem({"simulate", imported, "--json", "-", "--set", "parallelism.tp=4"});
  const CommandResult named = run_tandem({"simulate", scenario_file("llama3-8b-64"), "--json", "-", "--set", "model=" + config});
  EXPECT_EQ(of_import.exit_code, 0) << of_import.err;
  EXPECT_EQ(named.exit_code, 0) << named.err;
  const std::int64_t parameters = 7'615'616'512;  // those of its published weights
  for (const CommandResult& step : {of_import, named})
    EXPECT_EQ(nlohmann::json::parse(step.out)["parameters"]["total"].get<std::int64_t>(), parameters);
}

TEST(ImportExport, WhatIsAssumedStandsInTheJson) {
  const std::string config = TANDEM_SOURCE_DIR "/tests/scenarios/hf/qwen2.5-7b.json", account = path_of("account.json");
  ASSERT_EQ(run_tandem({"import", config, "--from", "hf", "--out", path_of("qwen.yaml"), "--json", account}).exit_code, 0);
  const nlohmann::json assumed = nlohmann::json::parse(std::ifstream(account));
  EXPECT_EQ(assumed["kind"], "import");
  EXPECT_EQ(assumed["from"], "hf");
  EXPECT_EQ(assumed["files"], std::vector<std::string>{config});
  EXPECT_THAT(assumed["assumed"][0].get<std::string>(), HasSubstr("dgx-h100"));
  ASSERT_EQ(run_tandem({"import", config, "--from", "hf", "--cluster", "dgx-h200", "--json", account, "--out", path_of("q.yaml")})
                .exit_code,
            0);
  EXPECT_EQ(nlohmann::json::parse(std::ifstream(account))["assumed"], nlohmann::json::array());
}

TEST(ImportExport, RefusesOptionsThatASourceHasNoUseFor) {
  const std::string config = TANDEM_SOURCE_DIR "/tests/scenarios/hf/qwen2.5-7b.json";
  expect_refusal(run_tandem({"import", config, "--from", "hf", "--step", "3"}), 2, {"--step: --from hf gives a scenario"});
  expect_refusal(run_tandem({"import", config, config, "--from", "hf"}), 2, {"is a second file, and --from hf takes one"});
  expect_refusal(run_tandem({"import", config, "--from", "hf", "--json", "-"}), 2, {"--json", "where --out already goes"});
}

TEST(ImportExport, RefusesWithAPlace) {
  const std::string file = path_of("wrong.toml");
  std::ofstream(file) << "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[parallelism]\ntensor_parallel_degree = "
                         "3\ndata_parallel_shard_degree = 1\n";
  expect_refusal(run_tandem({"import", file, "--from", "torchtitan"}), 2, {file + ":5:26", "tp 3 does not divide"});
  std::ofstream(file) << "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --micro-batch-size 1 "
                         "--global-batch-size 8 --vocab-size 99";
  expect_refusal(run_tandem({"import", file, "--from", "megatron"}), 2, {"--gpus"});
  std::ofstream(file) << "{\"model_type\": \"falcon\",\n \"parallel_attn\": true}";
  expect_refusal(run_tandem({"import", file, "--from", "hf"}), 2, {file + ":2:19: parallel_attn is `true`"});
  std::ofstream(file).close();
  expect_refusal(run_tandem({"import", file, "--from", "megatron"}), 2,
                 {file + ": is empty, expected pretrain_gpt.py's arguments"});
  expect_refusal(run_tandem({"import", "/", "--from", "megatron"}), 2, {"/: is a folder, expected pretrain_gpt.py's arguments"});
}

}  // namespace
}  // namespace tandem::cli::import_export_test
