// `tandem validate` predicts measured runs as `simulate` does, says what it had to assume, and drops none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "studies/validate/plausible.h"
#include "tests/cli/run_validate.h"

namespace tandem::cli::validate_test {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int done = 0;
constexpr int wrong_input = 2;

Json validated(const RunsTable& table, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"--json", "-"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const CommandResult run = run_validate(table, arguments);
  EXPECT_EQ(run.exit_code, done) << run.err;
  return Json::parse(run.out);
}

/// What `simulate` says of a scenario, with these fields set.
double simulated_time(const RunsTable& table, const Json& scenario, const std::vector<std::string>& fields = {}) {
  std::ofstream(table / "run.yaml") << scenario.get<std::string>();
  std::vector<std::string> arguments = {"simulate", table / "run.yaml", "--json", "-"};
  for (const std::string& field : fields) arguments.insert(arguments.end(), {"--set", field});
  const CommandResult run = run_tandem(arguments);
  EXPECT_EQ(run.exit_code, done) << run.err;
  return Json::parse(run.out)["step_time_s"];
}

TEST(Validate, PredictsWhatSimulateSays) {
  const RunsTable table(
      {tiny_run(), tiny_run({{"id", "b"}, {"n_gpus", "16"}, {"tp", "2"}, {"sp", "1"}, {"pp", "2"}, {"vpp", "2"}}),
       tiny_run({{"id", "c"}, {"experts", "8"}, {"top_k", "2"}, {"moe_ffn", "512"}, {"ep", "4"}, {"gated", "1"}})});
  const Json result = validated(table);
  ASSERT_EQ(result["rows"].size(), 3U);
  for (const Json& row : result["rows"]) {
    SCOPED_TRACE(row["id"]);
    const double predicted = row["predicted_step_time_s"];
    EXPECT_DOUBLE_EQ(predicted, simulated_time(table, row["scenario"]));
    EXPECT_LE(row["low_s"].get<double>(), predicted);
    EXPECT_GE(row["high_s"].get<double>(), predicted);
    EXPECT_DOUBLE_EQ(row["error"].get<double>(), predicted / 0.01 - 1);
  }
  EXPECT_EQ(result["rows"][2]["moe"], true);
}

TEST(Validate, TheRunsThatComeWithItAreSimulated) {
  const std::string folder = TANDEM_SOURCE_DIR "/scenarios/runs";
  std::size_t tables = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    for (const RunRow& row : load_runs(entry.path()).rows) EXPECT_FALSE(plausible_runs(row).empty()) << row.text("id");
    ++tables;
  }
  EXPECT_GT(tables, 0U);
  for (const RunRow& row : load_runs(TANDEM_SOURCE_DIR "/bench/accuracy/runs.csv").rows)
    EXPECT_FALSE(plausible_runs(row).empty()) << row.text("id");
}

TEST(Validate, ScoresTheRowsItPrints) {
  const RunsTable table({tiny_run(), tiny_run({{"id", "b"}, {"global_batch", "128"}, {"step_time_s", "0.02"}})});
  const Json result = validated(table);
  const Json& total = result["strata"][0];
  EXPECT_EQ(total["by"], "all");
  const double a = result["rows"][0]["error"], b = result["rows"][1]["error"];
  EXPECT_NEAR(total["mean_abs_error"].get<double>(), (std::abs(a) + std::abs(b)) / 2, 1e-12);
  EXPECT_NEAR(total["bias"].get<double>(), (a + b) / 2, 1e-12);
}

TEST(Validate, SimulatesThePlausibleValuesOfABlank) {
  const RunsTable table({tiny_run({{"micro_batch", ""}})});
  const Json row = validated(table)["rows"][0];
  std::vector<double> times;
  for (const char* size : {"1", "2", "4", "8"})
    times.push_back(simulated_time(table, row["scenario"], {std::string("training.micro_batch=") + size}));
  std::ranges::sort(times);
  ASSERT_LT(times.front(), times.back());
  EXPECT_LE(row["low_s"].get<double>(), times.front());
  EXPECT_GE(row["high_s"].get<double>(), times.back());
  EXPECT_DOUBLE_EQ(row["predicted_step_time_s"].get<double>(), (times[1] + times[2]) / 2);
  EXPECT_THAT(row["note"].get<std::string>(), HasSubstr("assumed micro_batch 1|2|4|8"));
}

TEST(Validate, ARowThatIsNoScenarioIsCountedAndTheOthersGoOn) {
  const RunsTable table({tiny_run({{"id", "a"}, {"tp", "3"}}), tiny_run({{"id", "b"}}), tiny_run({{"id", "c"}, {"gpu", "h100"}}),
                         tiny_run({{"id", "d"}, {"global_batch", ""}})});
  const CommandResult run = run_validate(table, {"--json", table / "out.json"});
  EXPECT_EQ(run.exit_code, done) << run.err;
  EXPECT_THAT(run.out, HasSubstr("1 of 4 runs simulated"));
  const Json result = Json::parse(read_all(table / "out.json"));
  ASSERT_EQ(result["rows"].size(), 4U);
  EXPECT_TRUE(result["rows"][0]["predicted_step_time_s"].is_null());
  EXPECT_TRUE(result["rows"][0]["error"].is_null());
  EXPECT_FALSE(result["rows"][1]["error"].is_null());
  ASSERT_EQ(result["unsimulated"].size(), 3U);
  EXPECT_THAT(result["unsimulated"][0]["reason"].get<std::string>(),
              testing::AllOf(HasSubstr(table.file() + ":2:"), HasSubstr("tp 3 does not divide")));
  EXPECT_THAT(result["unsimulated"][1]["reason"].get<std::string>(), HasSubstr("no GPU preset `h100`"));
  EXPECT_THAT(result["unsimulated"][2]["reason"].get<std::string>(), HasSubstr("global_batch"));
  EXPECT_EQ(result["strata"][0]["rows"], 1);
}

TEST(Validate, ARunThatRanIsSimulatedThoughItSeemsTooLarge) {
  const RunsTable table({tiny_run({{"preset", "llama3-8b"}, {"zero", "0"}, {"sequence", "8192"}, {"global_batch", "8"}})});
  const Json result = validated(table);
  const Json& row = result["rows"][0];
  EXPECT_GT(row["predicted_step_time_s"].get<double>(), 0);
  EXPECT_EQ(row["fits"], false);
  EXPECT_THAT(row["note"].get<std::string>(), HasSubstr("more than a GPU has"));
  EXPECT_EQ(result["memory"]["fits"]["ran_but_exceeds"], 1);
}

TEST(Validate, CoreRowsAreScoredApartOrAlone) {
  const RunsTable table({tiny_run({{"id", "a"}, {"core", "1"}}), tiny_run({{"id", "b"}, {"core", "0"}})});
  const Json both = validated(table);
  EXPECT_EQ(both["rows"].size(), 2U);
  EXPECT_TRUE(std::ranges::any_of(both["strata"], [](const Json& s) { return s["set"] == "core" && s["rows"] == 1; }));
  const Json alone = validated(table, {"--core"});
  ASSERT_EQ(alone["rows"].size(), 1U);
  EXPECT_EQ(alone["rows"][0]["id"], "a");
  expect_refusal(run_validate(RunsTable({tiny_run()}), {"--core"}), wrong_input, {"no row has core 1"});
}

TEST(Validate, RowsThatStateMemoryAlone) {
  const RunsTable table(
      {tiny_run({{"id", "a"}}), tiny_run({{"id", "b"}, {"memory_gb", "2"}}), tiny_run({{"id", "c"}, {"memory_gb", "OOM"}})});
  const Json alone = validated(table, {"--memory"});
  ASSERT_EQ(alone["rows"].size(), 2U);
  EXPECT_EQ(alone["rows"][0]["id"], "b");
  EXPECT_EQ(alone["memory"]["rows"].size(), 1U);
  expect_refusal(run_validate(RunsTable({tiny_run()}), {"--memory"}), wrong_input, {"no row states memory"});
}

TEST(Validate, TheScoredTableHoldsTheOldOne) {
  const RunsTable table({tiny_run({{"notes", "a, \"b\""}}), tiny_run({{"id", "b"}, {"tp", "3"}})});
  const CommandResult run = run_validate(table, {"--csv", "-"});
  ASSERT_EQ(run.exit_code, done) << run.err;
  const CsvTable before = parse_csv(read_all(table.file()), "before"), after = parse_csv(run.out, "after");
  ASSERT_EQ(after.rows.size(), 2U);
  for (std::size_t row = 0; row < 2; ++row)
    for (std::size_t i = 0; i < before.header.size(); ++i) {
      EXPECT_EQ(after.header[i].text, before.header[i].text);
      EXPECT_EQ(after.rows[row][i].text, before.rows[row][i].text);
    }
  const auto error = std::ranges::find(after.header, "error", &CsvCell::text) - after.header.begin();
  EXPECT_NE(after.rows[0][static_cast<std::size_t>(error)].text, "");
  EXPECT_EQ(after.rows[1][static_cast<std::size_t>(error)].text, "");
  // It is a table of runs itself, and scoring it again changes nothing.
  const std::string reasons_apart = run.out.substr(0, run.out.rfind("not simulated"));  // they name the file
  EXPECT_EQ(run_validate(RunsTable(run.out), {"--csv", "-"}).out.substr(0, reasons_apart.size()), reasons_apart);
}

// ---- what a row's blanks may be ----------------------------------------------------------------------------------------------

std::vector<std::string> assumed(const RunCells& cells) {
  std::vector<std::string> values;
  for (const PlausibleRun& run : plausible_runs(load_runs(RunsTable({cells}).file()).rows.front())) {
    std::string text;
    for (const auto& [column, value] : run.assumed) text += (text.empty() ? "" : " ") + column + "=" + value;
    values.push_back(text);
  }
  return values;
}

TEST(PlausibleRuns, ARunThatSaysAllIsOne) { EXPECT_THAT(assumed(tiny_run()), ElementsAre("")); }

TEST(PlausibleRuns, ChunksDivideAStagesLayers) {
  const RunCells cells = tiny_run({{"layers", "12"}, {"pp", "2"}});
  EXPECT_THAT(assumed(cells), ElementsAre("vpp=1", "vpp=2", "vpp=3", "vpp=6"));
  RunCells known = cells;
  known["schedule"] = "1f1b";
  EXPECT_THAT(assumed(known), ElementsAre("vpp=1"));
  known["schedule"] = "interleaved-1f1b";
  EXPECT_THAT(assumed(known), ElementsAre("vpp=2", "vpp=3", "vpp=6"));
  known["schedule"] = "";
  known["framework"] = "llama3";
  EXPECT_THAT(assumed(known), ElementsAre("vpp=2", "vpp=3", "vpp=6"));
  known["framework"] = "nemo";
  known["overlap_pp"] = "1";
  EXPECT_THAT(assumed(known), ElementsAre("vpp=2", "vpp=3", "vpp=6"));
  known["overlap_pp"] = "";
  known["framework"] = "megatron-deepspeed";  // whose pipelines are DeepSpeed's
  EXPECT_THAT(assumed(known), ElementsAre("vpp=1"));
}

TEST(PlausibleRuns, MicroBatchesDivideTheBatch) {
  EXPECT_THAT(assumed(tiny_run({{"micro_batch", ""}, {"global_batch", "16"}})), ElementsAre("micro_batch=1", "micro_batch=2"));
}

TEST(PlausibleRuns, FrameworksHaveTheirDefaults) {
  const RunCells cells = tiny_run({{"zero", ""}, {"recompute", ""}, {"framework", "torchtitan"}});
  const std::string full = "zero=3 recompute=full recompute_every=";
  EXPECT_THAT(assumed(cells), ElementsAre("zero=3 recompute=selective", full + "8", full + "4", full + "2", full + "1"));
}

TEST(PlausibleRuns, ARunThatFitsRecomputesNoMoreThanItMust) {
  const RunCells small = tiny_run({{"recompute", ""}, {"framework", "llm-foundry"}, {"zero", "3"}});
  RunCells large = small;  // whose activations alone are 32 * 2 * 34 * 8192 * 4096 bytes, Korthikanti et al. 2022, equation 2
  for (const auto& [column, text] : RunCells{{"id", "b"}, {"preset", "llama3-8b"}, {"sequence", "8192"}, {"micro_batch", "2"}})
    large[column] = text;
  const RunsTable table({small, large});
  const Json rows = validated(table)["rows"];
  EXPECT_EQ(rows[0]["assumed"]["recompute"], "none");
  EXPECT_EQ(rows[1]["assumed"]["recompute"], "full");
  EXPECT_EQ(rows[1]["fits"], true);
  const int every = std::stoi(rows[1]["assumed"]["recompute_every"].get<std::string>());
  ASSERT_LT(every, 8);
  std::ofstream(table / "large.yaml") << rows[1]["scenario"].get<std::string>();
  const auto fits = [&](int layers) {
    const CommandResult run = run_tandem({"simulate", table / "large.yaml", "--allow-oom", "--json", "-", "--set",
                                          "training.recompute_every=" + std::to_string(layers)});
    EXPECT_EQ(run.exit_code, done) << run.err;
    return Json::parse(run.out)["memory"]["fits"].get<bool>();
  };
  EXPECT_TRUE(fits(every));
  EXPECT_FALSE(fits(2 * every));
}

TEST(PlausibleRuns, AreTwelveAtMost) {
  const auto runs =
      assumed(tiny_run({{"layers", "24"}, {"tp", "2"}, {"pp", "2"}, {"zero", ""}, {"micro_batch", ""}, {"recompute", ""}}));
  ASSERT_EQ(runs.size(), 2 * most_plausible_runs);  // and as many that recompute all
  EXPECT_EQ(std::set<std::string>(runs.begin(), runs.end()).size(), runs.size());
}

// ---- rows as scenarios -------------------------------------------------------------------------------------------------------

RunScenario scenario_with(const RunCells& changes) {
  return scenario_of(load_runs(RunsTable({tiny_run(changes)}).file()).rows.front());
}

TEST(RunScenario, PadsAVocabularyAsMegatronDoes) {
  const RunScenario run = scenario_with({{"vocab", "50257"}, {"tp", "2"}, {"sp", "0"}});
  EXPECT_EQ(run.scenario.model.vocab, 50432);  // 197 * 128 * 2
  EXPECT_THAT(run.notes, testing::Contains(HasSubstr("padded to 50432")));
}

TEST(RunScenario, SplitsLayersThatDoNotDivide) {
  const ParallelismSpec two_more = scenario_with({{"layers", "14"}, {"pp", "4"}, {"schedule", "1f1b"}}).scenario.parallelism;
  EXPECT_TRUE(two_more.account_for_embedding);
  EXPECT_TRUE(two_more.account_for_loss);
  const ParallelismSpec one_more = scenario_with({{"layers", "15"}, {"pp", "4"}, {"schedule", "1f1b"}}).scenario.parallelism;
  EXPECT_FALSE(one_more.account_for_embedding);
  EXPECT_TRUE(one_more.account_for_loss);
  const ParallelismSpec fewer_last = scenario_with({{"layers", "13"}, {"pp", "4"}, {"schedule", "1f1b"}}).scenario.parallelism;
  EXPECT_EQ(fewer_last.last_stage_layers, 1);  // 4 + 4 + 4 + 1
}

TEST(RunScenario, LightensTheLastOfManyChunks) {
  const RunScenario run = scenario_with({{"layers", "13"}, {"pp", "2"}, {"vpp", "2"}, {"mtp_depth", "1"}});
  EXPECT_EQ(layout_text(run.scenario.parallelism.pipeline_layout), "Et*4|(t*4|)*2tmL");
  EXPECT_THAT(run.notes, testing::Contains(HasSubstr("the 13 layers are laid on 4 model chunks as Et*4|(t*4|)*2tmL")));
  const RunScenario thin = scenario_with({{"layers", "17"}, {"pp", "2"}, {"vpp", "6"}, {"schedule", "interleaved-1f1b"}});
  EXPECT_EQ(layout_text(thin.scenario.parallelism.pipeline_layout), "Ett|(tt|)*4(t|)*6tL");  // 2 each would be 24
}

TEST(RunScenario, TakesALayoutAsItStands) {
  const RunScenario run = scenario_with({{"layers", "13"}, {"pp", "2"}, {"vpp", "2"}, {"pipeline_layout", "E|t*6|t*6|tL"}});
  EXPECT_EQ(layout_text(run.scenario.parallelism.pipeline_layout), "E|(t*6|)*2tL");
  EXPECT_THAT(run.notes, testing::Not(testing::Contains(HasSubstr("layers"))));
}

TEST(RunScenario, ChunksMakeTheScheduleInterleaved) {
  EXPECT_EQ(scenario_with({{"pp", "2"}, {"vpp", "2"}}).scenario.training.schedule, ScheduleKind::interleaved);
  EXPECT_EQ(scenario_with({{"pp", "2"}, {"vpp", "1"}}).scenario.training.schedule, ScheduleKind::one_f_one_b);
  EXPECT_EQ(scenario_with({{"pp", "1"}, {"vpp", "2"}, {"schedule", "interleaved-1f1b"}}).scenario.parallelism.vpp, 1);
}

TEST(RunScenario, ReadsModulesThatAreRecomputed) {
  const RecomputeSpec recompute = scenario_with({{"recompute", "norm+act"}}).scenario.training.recompute;
  EXPECT_TRUE(recompute.norm && recompute.activation);
  EXPECT_FALSE(recompute.attention || recompute.mlp || recompute.every > 0);
}

TEST(RunScenario, AttentionIsFusedOrNotAsTheRunSays) {
  const auto kernel = [](const std::string& framework, const std::string& attention) {
    const RunScenario run = scenario_with({{"gpu", "a100-80gb"}, {"framework", framework}, {"attention", attention}});
    return run.scenario.cluster.gpu.efficiency.attention_kernel;
  };
  EXPECT_EQ(kernel("megatron-2021", ""), AttentionKernel::unfused);
  EXPECT_EQ(kernel("megatron-2021", "flash"), AttentionKernel::flash_2);
  EXPECT_EQ(kernel("megatron-core", "flash"), AttentionKernel::flash_2);
  EXPECT_EQ(kernel("megatron-core", "unfused"), AttentionKernel::unfused);
}

TEST(RunScenario, WhatNobodyKnowsOfAFrameworkIsANote) {
  EXPECT_THAT(scenario_with({{"framework", "nemo"}, {"compiled", "1"}}).notes, testing::Contains(HasSubstr("torch.compile")));
  EXPECT_THAT(scenario_with({{"framework", "torchtitan"}, {"compiled", "1"}}).notes, testing::IsEmpty());
}

TEST(RunScenario, LearnedPositionsReachTheSequence) {
  EXPECT_EQ(scenario_with({{"preset", "gpt3-175b"}, {"tp", "8"}, {"sp", "1"}, {"sequence", "4096"}}).scenario.model.max_positions,
            4096);
}

TEST(RunScenario, AFewGpusAreOneSmallNode) {
  const RunScenario run = scenario_with({{"n_gpus", "2"}, {"gpus_per_node", "8"}});
  EXPECT_EQ(run.scenario.cluster.gpus_per_node, 2);
}

}  // namespace
}  // namespace tandem::cli::validate_test
