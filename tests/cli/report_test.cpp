// The HTML page that --report and `tandem report` write: what it is given to draw. How it draws it is tested in a browser
// (viz/tests).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/json_result.h"
#include "tests/cli/run_validate.h"
#include "tests/cli/study.h"
#include "tests/studies/page_columns.h"

namespace tandem::cli::report_test {
namespace {

using nlohmann::json;
using studies::column;

const std::string tiny = scenario_file("tiny-host");
constexpr int does_not_fit = 3;

std::string data_of(const std::string& path) {
  const std::string page = read_all(path), opening = "<script type=\"application/json\" id=\"report\">";
  const std::size_t begin = page.find(opening);
  EXPECT_NE(begin, std::string::npos);
  EXPECT_EQ(page.find(opening, begin + 1), std::string::npos);
  const std::size_t data = begin + opening.size();
  return page.substr(data, page.find("</script>", data) - data);
}

json report_in(const std::string& path) { return json::parse(data_of(path)); }

struct StepPage {
  json result, report;
};

StepPage simulated(const std::vector<std::string>& more, int exit_code = 0) {
  const TemporaryFolder folder;
  std::vector<std::string> arguments{"simulate", "--report", folder / "r.html", "--json", folder / "r.json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const CommandResult run = run_tandem(arguments);
  EXPECT_EQ(run.exit_code, exit_code) << run.err;
  return {exit_code == 0 ? json::parse(read_all(folder / "r.json")) : json(), report_in(folder / "r.html")};
}

double sum_of(const json& list, const char* key) {
  double sum = 0;
  for (const json& item : list) sum += item[key].get<double>();
  return sum;
}

/// What must hold of every simulated step's page.
void expect_consistent(const json& report) {
  const double step = report["timeline"]["step_s"];
  const json& path = report["critical_path"];
  EXPECT_NEAR(sum_of(path["kinds"], "time_s"), step, 1e-9 * step);
  const auto durations = column<std::uint32_t>(path, "duration");
  std::map<std::string, double> ticks;  // by kind
  const auto kinds = column<std::uint32_t>(path, "kind");
  for (std::size_t i = 0; i < durations.size(); ++i) ticks[path["names"].at(kinds[i])] += durations[i];
  double now = 0;
  for (const json& kind : path["kinds"]) {
    const double time = ticks[kind["name"]] * path["tick_s"].get<double>();
    EXPECT_NEAR(time, kind["time_s"].get<double>(), 1e-9 * static_cast<double>(durations.size()) * step);
    now += time;
  }
  EXPECT_NEAR(now, step, 1e-9 * step);
  for (const auto row : column<std::int16_t>(path, "row")) EXPECT_LT(row, static_cast<int>(report["timeline"]["rows"].size()));
  const auto tasks_of = column<std::uint32_t>(path, "tasks");
  EXPECT_EQ(tasks_of.size(), path["segments"]);
  EXPECT_EQ(column<std::uint32_t>(path, "task").size(), path["segments"]);
  EXPECT_GE(std::ranges::min(tasks_of), 1U);

  const json& stages = report["result"]["memory"]["stages"];
  ASSERT_EQ(report["memory"].size(), stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const json& memory = report["memory"][s];
    EXPECT_EQ(memory["peak_bytes"], stages[s]["peak_bytes"]);
    std::int64_t most = 0;
    for (std::size_t i = 0; i < memory["t_s"].size(); ++i)
      most = std::max(most, memory["activations"][i].get<std::int64_t>() + memory["buffers"][i].get<std::int64_t>());
    EXPECT_EQ(memory["parameters"].get<std::int64_t>() + memory["gradients"].get<std::int64_t>() +
                  memory["optimizer"].get<std::int64_t>() + most,
              memory["peak_bytes"]);
  }
  for (const json& tier : report["links"]["tiers"])
    for (const json& share : tier["utilisation"]) EXPECT_LE(share.get<double>(), 1.0);
  for (const json& blame : report["blame"])
    EXPECT_NEAR(blame["gained_s"].get<double>(), step - blame["step_time_s"].get<double>(), 1e-9 * step);
  std::size_t tasks = 0;
  const std::size_t times = report["timeline"].contains("repeat") ? report["timeline"]["repeat"]["times"].get<std::size_t>() : 0;
  for (const json& row : report["timeline"]["rows"])
    for (const json& stream : row["streams"]) {
      tasks += stream["tasks"].get<std::size_t>();
      if (times > 0) tasks += times * (stream["repeated"][1].get<std::size_t>() - stream["repeated"][0].get<std::size_t>());
    }
  if (report["timeline"]["rows"].size() == report["result"]["run"]["rank_classes"]) {
    EXPECT_EQ(tasks, report["result"]["run"]["tasks"]);
  }
}

TEST(Report, HoldsTheResultAndItsTimeline) {
  for (const char* name : {"tiny-host", "llama3-8b-64", "mixtral-8x22b-8k"}) {
    SCOPED_TRACE(name);
    const StepPage page = simulated({scenario_file(name)});
    EXPECT_EQ(page.report["kind"], "step");
    EXPECT_EQ(page.report["result"], page.result);
    EXPECT_FALSE(page.report["blame"].empty());
    expect_consistent(page.report);
  }
}

// With faster NICs the uplinks of leaves are too slow for all of them, so that they tell more ranks apart than in the step
// itself.
TEST(Report, BlamesAFoldLikeAllRanks) {
  const std::vector<std::string> leaves = {tiny,
                                           "--set",
                                           "model={layers: 4, hidden: 1024, heads: 8, kv_heads: 8, ffn: 4096, vocab: 64}",
                                           "--set",
                                           "cluster={preset: dgx-h100, gpus: 64, fabric: {leaf_ports: 4}}",
                                           "--set",
                                           "parallelism={tp: 4, pp: 2, dp: 8}",
                                           "--set",
                                           "training={sequence: 512, micro_batch: 1, global_batch: 16}",
                                           "--set",
                                           "faults.slow_gpu={rank: 13, factor: 0.5}"};
  std::vector<std::string> unfolded = leaves;
  unfolded.emplace_back("--no-fold");
  const StepPage fold = simulated(leaves), all = simulated(unfolded);
  EXPECT_EQ(fold.report["result"]["run"]["rank_classes"], 8);
  EXPECT_EQ(all.report["result"]["run"]["rank_classes"], 64);
  const auto times = [](const json& report) {
    std::map<std::string, double> times;
    for (const json& blame : report["blame"])
      times[blame["group"].get<std::string>() + " " + blame["name"].get<std::string>()] = blame["step_time_s"];
    return times;
  };
  const std::map<std::string, double> of_fold = times(fold.report), of_all = times(all.report);
  EXPECT_TRUE(of_fold.contains("tier nic"));
  std::size_t compared = 0;
  for (const auto& [name, time] : of_fold)
    if (const auto same = of_all.find(name); same != of_all.end()) {
      EXPECT_NEAR(time, same->second, 1e-9 * same->second) << name;
      ++compared;
    }
  EXPECT_GE(compared, 6U);
  EXPECT_TRUE(of_all.contains("tier nic"));
}

TEST(Report, OfCollectivesInStepsIsBlamedInSteps) {
  const StepPage page = simulated({tiny, "--collectives", "steps"});
  for (const json& blame : page.report["blame"])
    EXPECT_LE(std::abs(blame["gained_s"].get<double>()), 0.1 * page.report["timeline"]["step_s"].get<double>());
  expect_consistent(page.report);
}

TEST(Report, OfOneGpuHasNoCommunication) {
  const StepPage page = simulated({scenario_file("llama3-8b-64"), "--set", "parallelism={tp: 1, dp: 1, sp: false}", "--set",
                                   "cluster.gpus=1", "--set", "training.global_batch=1", "--allow-oom"});
  EXPECT_TRUE(page.report["links"]["links"].empty());
  EXPECT_TRUE(page.report["mesh"]["axes"].empty());
  expect_consistent(page.report);
}

TEST(Report, OfWhatDoesNotFitSaysSo) {
  const StepPage page = simulated(
      {scenario_file("llama3-8b-64"), "--set", "training.micro_batch=64", "--set", "training.global_batch=4096"}, does_not_fit);
  EXPECT_EQ(page.report["result"]["memory"]["fits"], false);
  expect_consistent(page.report);
}

TEST(Report, PutsAxesOnTheirTiers) {
  const json report = simulated({scenario_file("llama3-405b-16k")}).report;
  std::map<std::string, json> axes;
  for (const json& axis : report["mesh"]["axes"]) axes[axis["axis"]] = axis;
  EXPECT_EQ(axes["tp"]["reach"], "node");
  EXPECT_EQ(axes["tp"]["nodes"], 1);
  EXPECT_EQ(axes["dp"]["size"], 128);
  EXPECT_EQ(axes["dp"]["nodes"], 128);
  EXPECT_EQ(axes["pp"]["size"].get<int>() * axes["dp"]["size"].get<int>() * axes["tp"]["size"].get<int>(), 16384);
  EXPECT_EQ(report["mesh"]["gpus_drawn"][9]["tp"], 1);
}

TEST(Report, CannotBeBrokenByAName) {
  const TemporaryFolder folder;
  const CommandResult run = run_tandem({"simulate", tiny, "--set", "name=\"</script><!-- <b>\"", "--report", folder / "r.html"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(data_of(folder / "r.html").find("<!--"), std::string::npos);
  EXPECT_EQ(report_in(folder / "r.html")["title"], "</script><!-- <b>");
}

TEST(Report, OfACrosscheckPairsTasks) {
  const TemporaryFolder folder;
  const CommandResult run = run_tandem({"crosscheck", tiny, "--backend", "host", "--report", folder / "r.html"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json report = report_in(folder / "r.html");
  EXPECT_EQ(report["kind"], "crosscheck");
  EXPECT_EQ(report["tasks"]["kind"].size(), report["result"]["run"]["tasks"]);
  std::map<std::string, double> measured;
  for (std::size_t i = 0; i < report["tasks"]["kind"].size(); ++i)
    measured[report["tasks"]["kinds"][report["tasks"]["kind"][i].get<std::size_t>()]] +=
        report["tasks"]["measured_s"][i].get<double>();
  for (const json& kind : report["result"]["crosscheck"]["kinds"])
    EXPECT_NEAR(measured[kind["kind"]], kind["measured_s"], 1e-9) << kind["kind"];
}

TEST(Report, OfAnExecutionHasNoBlame) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_tandem({"execute", tiny, "--backend", "host", "--report", folder / "r.html"}).exit_code, 0);
  const json report = report_in(folder / "r.html");
  EXPECT_TRUE(report["blame"].empty());
  expect_consistent(report);
}

TEST(Report, OfAStudyHoldsEveryPoint) {
  const StudyFolder folder(tiny_study("grid: {parallelism.dp: [1, 2], training.micro_batch: [1, 2]}\n"));
  const CommandResult run = folder.sweep({"--report", folder / "swept.html"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const CommandResult later = run_tandem({"report", folder.database(), "--out", folder / "later.html"});
  ASSERT_EQ(later.exit_code, 0) << later.err;
  const json swept = report_in(folder / "swept.html"), read = report_in(folder / "later.html");
  EXPECT_EQ(swept["points"], read["points"]);
  EXPECT_EQ(swept["parameters"], read["parameters"]);
  EXPECT_EQ(read["parameters"][0], json({{"name", "parallelism.dp"}, {"values", {1, 2}}}));
  ASSERT_EQ(read["points"].size(), 4U);
  for (const json& point : read["points"]) {
    EXPECT_EQ(point["status"], "done");
    EXPECT_EQ(point["result"]["gpus"], point["parameters"]["parallelism.dp"]);
  }
}

TEST(Report, OfMeasuredRunsHoldsEveryRun) {
  const RunsTable table({tiny_run(), tiny_run({{"id", "b"}, {"tp", "3"}})});
  const CommandResult run = run_validate(table, {"--report", table / "r.html", "--json", table / "r.json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json report = report_in(table / "r.html"), result = json::parse(read_all(table / "r.json"));
  EXPECT_EQ(report["kind"], "validation");
  ASSERT_EQ(report["rows"].size(), 2U);
  for (const char* key : {"id", "measured_step_time_s", "predicted_step_time_s", "low_s", "high_s", "error", "note"})
    EXPECT_EQ(report["rows"][0][key], result["rows"][0][key]) << key;
  for (const char* key : {"strata", "memory", "ratios", "unsimulated"}) EXPECT_EQ(report[key], result[key]) << key;
}

TEST(Report, OfAResultByItselfHasNoTimeline) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_tandem({"simulate", tiny, "--json", folder / "r.json"}).exit_code, 0);
  ASSERT_EQ(run_tandem({"report", folder / "r.json", "--out", folder / "r.html"}).exit_code, 0);
  const json report = report_in(folder / "r.html");
  EXPECT_EQ(report["result"], json::parse(read_all(folder / "r.json")));
  EXPECT_TRUE(report["timeline"]["rows"].empty());
}

TEST(Report, GoesToStandardOutputWhereThatIsAsked) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_tandem({"simulate", scenario_file("tiny-host"), "--json", folder / "r.json"}).exit_code, 0);
  const CommandResult run = run_tandem({"report", folder / "r.json", "--out", "-"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.out.starts_with("<!doctype html>")) << run.out.substr(0, 80);
}

TEST(Report, OfACrosschecksResultCompares) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_tandem({"crosscheck", tiny, "--backend", "host", "--json", folder / "r.json"}).exit_code, 0);
  ASSERT_EQ(run_tandem({"report", folder / "r.json", "--out", folder / "r.html"}).exit_code, 0);
  const json report = report_in(folder / "r.html");
  EXPECT_EQ(report["kind"], "crosscheck");
  EXPECT_EQ(report["result"], json::parse(read_all(folder / "r.json")));
}

TEST(Report, OfADifferenceAddsUp) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_tandem({"simulate", tiny, "--json", folder / "a.json"}).exit_code, 0);
  ASSERT_EQ(run_tandem({"simulate", tiny, "--set", "training.recompute=full", "--json", folder / "b.json"}).exit_code, 0);
  const CommandResult run = run_tandem({"diff", folder / "a.json", folder / "b.json", "--report", folder / "r.html"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json report = report_in(folder / "r.html");
  EXPECT_EQ(report["kind"], "diff");
  double change = 0;
  for (const json& part : report["parts"]) change += part["b_s"].get<double>() - part["a_s"].get<double>();
  const double a = report["a"]["step_time_s"], b = report["b"]["step_time_s"];
  EXPECT_GT(b, a);
  EXPECT_NEAR(change, b - a, 1e-9 * b);
}

TEST(Report, RefusesWhatIsNoResult) {
  const TemporaryFolder folder;
  std::ofstream(folder / "r.json") << "{\"scenario\": \"x\"}";
  expect_refusal(run_tandem({"report", folder / "r.json", "--out", folder / "r.html"}), 2,
                 {"r.json", "has no 'step_time_s'", "--json"});
  std::ofstream(folder / "r.txt") << "hello";
  expect_refusal(run_tandem({"report", folder / "r.txt", "--out", folder / "r.html"}), 2, {"r.txt", "neither SQLite nor JSON"});
  expect_refusal(run_tandem({"report", folder / "none.json", "--out", folder / "r.html"}), 2,
                 {"none.json: cannot be read: No such file"});
  expect_refusal(run_tandem({"report", "/", "--out", folder / "r.html"}), 2, {"/: cannot be read: Is a directory"});
  EXPECT_FALSE(std::filesystem::exists(folder / "r.html"));
}

}  // namespace
}  // namespace tandem::cli::report_test
