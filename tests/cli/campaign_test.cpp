// `tandem campaign`: parts that add up, the same for any number of jobs, slow nodes, and settings that contradict each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/run_command.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::cli::campaign_test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

constexpr int wrong_input = 2, does_not_fit = 3;

CommandResult run_campaign(const std::vector<std::string>& settings, const std::string& scenario = "llama3-8b-64") {
  std::vector<std::string> arguments{"campaign", scenario_file(scenario)};
  for (const std::string& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
  arguments.insert(arguments.end(), {"--json", "-", "--jobs", "2"});
  return run_tandem(arguments);
}

Json campaign_json(const std::vector<std::string>& settings, const std::string& scenario = "llama3-8b-64") {
  const CommandResult run = run_campaign(settings, scenario);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return Json::parse(run.out);
}

const Json& interval_named(const Json& result, const std::string& name) {
  for (const Json& row : result["checkpoint"]["intervals"])
    if (row["name"] == name) return row;
  throw std::runtime_error("no interval " + name);
}

// Days by hand: the tokens' steps, over the goodput.
TEST(Campaign, PartsAddUpToTheTime) {
  const Json result = campaign_json({"campaign.tokens=1e12", "campaign.replicas=200", "faults.mtbf={node_hours: 500}"});
  double sum = 0;
  for (const Json& part : result["parts_s"]) sum += part.get<double>();
  const double time = result["time_s"]["mean"];
  EXPECT_NEAR(sum, time, 1e-6 * time);
  const double steps = std::ceil(1e12 / result["step"]["tokens"].get<double>());
  const double training = steps * result["step"]["time_s"].get<double>();
  EXPECT_NEAR(result["parts_s"]["training"].get<double>(), training, 1e-6 * training);
  EXPECT_NEAR(result["goodput"]["mean"].get<double>(), training / time, 1e-3);
  EXPECT_NEAR(result["gpu_hours"]["mean"].get<double>(), time / 3600 * 64, 1e-3 * time);
  EXPECT_LT(result["time_with_step_s"]["p5"], result["time_s"]["p5"]);
  EXPECT_GT(result["time_with_step_s"]["p95"], result["time_s"]["p95"]);
  // 8 nodes, one of which fails every 500 h: every 62.5 h of training and restarts.
  EXPECT_NEAR(result["interruptions"]["mtbf_s"].get<double>(), 500 * 3600.0 / 8, 1e-3);
  EXPECT_NEAR(result["interruptions"]["unexpected"]["mean"].get<double>(), time / (62.5 * 3600), 0.05 * time / (62.5 * 3600));
}

// 8,030,261,248 parameters (the published count), of 2 bytes in bf16 and three times 4 in fp32.
TEST(Campaign, ACheckpointHasWeightsAndOptimizerStates) {
  const Json result = campaign_json({"campaign.days=10", "campaign.checkpoint={mode: async, node_GBps: 1, interval_steps: 90}"});
  EXPECT_EQ(result["checkpoint"]["parameters"], 8'030'261'248);
  const double bytes = 14.0 * 8'030'261'248;
  EXPECT_DOUBLE_EQ(result["checkpoint"]["bytes"].get<double>(), bytes);
  EXPECT_NEAR(result["checkpoint"]["write_s"].get<double>(), bytes / 8e9, 1e-6);  // eight nodes of 1 GB/s each
  EXPECT_GT(result["checkpoint"]["stall_s"], 0);
  EXPECT_LT(result["checkpoint"]["stall_s"], 2);
  EXPECT_EQ(interval_named(result, "used")["steps"], 90);
  EXPECT_EQ(interval_named(result, "twice")["steps"], 180);
}

TEST(Campaign, NoIntervalIsBetterThanTheBest) {
  const Json result = campaign_json({"campaign.days=300", "faults.mtbf={gpu_hours: 200}", "campaign.checkpoint.write_GBps=5"});
  const double best = interval_named(result, "best")["goodput_closed_form"];
  for (const char* name : {"half", "twice", "young", "daly"})
    EXPECT_LE(interval_named(result, name)["goodput_closed_form"].get<double>(), best + 1e-6) << name;
  EXPECT_NEAR(
      interval_named(result, "best")["interval_s"].get<double>() / interval_named(result, "daly")["interval_s"].get<double>(), 1,
      0.03);
  EXPECT_NEAR(result["goodput"]["mean"].get<double>(), best, 0.005);
}

TEST(Campaign, ASlowNodeSlowsTheWholeJob) {
  const std::vector<std::string> settings{"campaign.days=30", "faults.mtbf={software_hours: 1e6}"};
  std::vector<std::string> slow = settings;
  slow.emplace_back("campaign.slow_node={one_in: 1, factor: 0.5}");  // all nodes
  const Json healthy = campaign_json(settings), slowed = campaign_json(slow);
  const double speed = slowed["step"]["time_s"].get<double>() / slowed["step"]["with_slow_node_s"].get<double>();
  EXPECT_LT(speed, 0.75);
  EXPECT_NEAR(slowed["goodput"]["mean"].get<double>() / healthy["goodput"]["mean"].get<double>(), speed, 1e-3);
  EXPECT_EQ(healthy["step"]["with_slow_node_s"], nullptr);
}

TEST(Campaign, JobsDoNotChangeTheResult) {
  const std::vector<std::string> arguments{"campaign", scenario_file("llama3-8b-64"), "--set", "campaign.days=90", "--json", "-"};
  std::vector<std::string> alone = arguments, many = arguments;
  alone.insert(alone.end(), {"--jobs", "1"});
  many.insert(many.end(), {"--jobs", "5"});
  const CommandResult first = run_tandem(alone);
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.out, run_tandem(many).out);
}

// "The Llama 3 Herd of Models", table 5 and section 3.3.4, by the command that a user would type.
TEST(Campaign, Llama3sFiftyFourDays) {
  const Json result = campaign_json({"campaign.replicas=300"}, "llama3-405b-16k-campaign");
  EXPECT_LT(result["interruptions"]["unexpected"]["p5"], 419);
  EXPECT_GT(result["interruptions"]["unexpected"]["p95"], 419);
  EXPECT_GT(result["goodput"]["p5"], 0.90);
  const double per_gpu = result["checkpoint"]["bytes"].get<double>() / 16384;
  EXPECT_GT(per_gpu, 1e6);  // "1 MB to 4 GB per GPU", section 3.3.1
  EXPECT_LT(per_gpu, 4e9);
}

TEST(Campaign, ContradictionsNameThePair) {
  expect_refusal(run_campaign({"campaign.tokens=1e12", "campaign.days=3"}), wrong_input, {"campaign.tokens", "campaign.days"});
  expect_refusal(run_campaign({"campaign.days=3", "campaign.checkpoint={mode: async, interval_s: 2, write_GBps: 1}"}),
                 wrong_input, {"campaign.checkpoint.interval_s", "campaign.checkpoint.write_GBps", "66 steps"});
  expect_refusal(run_campaign({"campaign.days=3", "faults.mtbf.gpu_hours=0.1"}), wrong_input,
                 {"faults.mtbf", "campaign.restart_s"});
  expect_refusal(run_campaign({"campaign.days=3", "parallelism.zero=0", "training.micro_batch=4"}), does_not_fit,
                 {"--allow-oom"});
}

TEST(Campaign, WritesItsFileWholeOrNotAtAll) {
  const TemporaryFolder folder;
  const std::string file = folder / "campaign.json";
  expect_refusal(run_tandem({"campaign", scenario_file("llama3-8b-64"), "--json", file}), wrong_input, {"campaign.tokens"});
  EXPECT_FALSE(std::filesystem::exists(file));
  const CommandResult run = run_tandem({"campaign", scenario_file("llama3-8b-64"), "--set", "campaign.days=3", "--json", file});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(std::filesystem::exists(file));
  for (const char* words : {"goodput", "lost work", "Young 1974", "software", "1000 campaigns played"})
    EXPECT_THAT(run.out, HasSubstr(words));
}

// Nothing is kept of a run that was killed, and nothing in the result says when or how it was made.
TEST(Campaign, TheSameCommandAfterAKillGivesTheSameBytes) {
  const auto play_into = [](const TemporaryFolder& folder, const std::string& jobs, std::optional<Seconds> kill_after) {
    return run_tandem({"campaign", scenario_file("llama3-405b-16k-campaign"), "--json", folder / "c.json", "--jobs", jobs},
                      {.kill_after = kill_after});
  };
  const TemporaryFolder undisturbed;
  const CommandResult run = play_into(undisturbed, "1", std::nullopt);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::string whole = read_all(undisturbed / "c.json");
  int killed = 0;
  for (const double part : {0.2, 0.5, 0.8, 0.95}) {
    SCOPED_TRACE(part);
    const TemporaryFolder folder;
    if (play_into(folder, "2", part * run.wall).signal == SIGKILL) {
      ++killed;
      for (const auto& left : std::filesystem::directory_iterator(folder.path())) {
        EXPECT_EQ(left.path().filename(), "c.json");
        EXPECT_EQ(read_all(left.path()), whole);
      }
    }
    ASSERT_EQ(play_into(folder, "3", std::nullopt).exit_code, 0);
    EXPECT_EQ(read_all(folder / "c.json"), whole);
  }
  EXPECT_GT(killed, 0);
}

}  // namespace
}  // namespace tandem::cli::campaign_test
