// `tandem search` finds what simulating every plan finds, whatever interrupts it and however many processes it has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>

#include "runtime/base/text_file.h"
#include "scenarios/reading/document.h"
#include "studies/search/plan_score.h"
#include "studies/search/plan_space.h"
#include "studies/step/simulated_step.h"
#include "tests/cli/run_command.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::cli::search_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Json = nlohmann::json;

constexpr int done = 0, wrong_input = 2, does_not_fit = 3;

const std::string model = R"(
model: {preset: llama3-8b, layers: 8}
cluster: {preset: dgx-h100, gpus: 8}
parallelism: {tp: 2, sp: true, dp: 4}
training: {sequence: 2048, micro_batch: 1, global_batch: 16, precision: bf16}
)";
const std::string few_axes =
    "  axes: {tp: [1, 2, 4], pp: [1, 2, 4], cp: [1], zero: [1], micro_batch: [1, 2], schedule: [1f1b, interleaved-1f1b], "
    "recompute: [none, full]}\n";

class SearchFolder {
 public:
  explicit SearchFolder(const std::string& search, const std::string& scenario = model) {
    std::ofstream(this->scenario()) << scenario << (search.empty() ? "" : "search:\n" + search);
  }
  std::string scenario() const { return folder_ / "searched.yaml"; }
  std::string operator/(const std::string& name) const { return folder_ / name; }
  CommandResult search(std::vector<std::string> more = {}, const CommandOptions& options = {}) const {
    std::vector<std::string> arguments{"search", scenario(), "--out", folder_ / "study.sqlite"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_tandem(arguments, options);
  }
  /// What it found, without what it cost.
  Json found(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"--json", "-"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult run = search(arguments);
    EXPECT_EQ(run.exit_code, done) << run.err;
    Json json = Json::parse(run.out);
    json.erase("run");
    return json;
  }

 private:
  TemporaryFolder folder_;
};

/// The best plan by simulating every one.
struct Exhaustive {
  std::size_t plans = 0;
  std::string plan;
  Seconds step_time = std::numeric_limits<Seconds>::infinity();
};
Exhaustive by_all_plans(const SearchFolder& folder) {
  const SearchSpec spec = load_search(folder.scenario(), {});
  const PlanSpace space(spec);
  Exhaustive best;
  for (const Plan& plan : space.all()) {
    ++best.plans;
    std::optional<Scenario> scenario;
    try {
      scenario = read_document(document_of(plan, space.choices(), spec), spec.name);
    } catch (const InputError&) {
      continue;
    }
    const StepResult result = simulate_step(*scenario, true).result;
    if (result.peak_memory() > memory_limit(spec) || result.step_time >= best.step_time) continue;
    best.plan = to_text(plan, space.choices());
    best.step_time = result.step_time;
  }
  return best;
}

TEST(Search, FindsTheBestOfAllPlans) {
  const SearchFolder folder(few_axes);
  const Exhaustive best = by_all_plans(folder);
  const Json found = folder.found();
  ASSERT_GE(best.plans, 60U);
  EXPECT_EQ(found["counts"]["plans"], best.plans);
  EXPECT_EQ(found["best"][0]["plan"], best.plan);
  EXPECT_DOUBLE_EQ(found["best"][0]["step_time_s"].get<double>(), best.step_time);
  EXPECT_LT(found["counts"]["simulated"].get<std::size_t>(), best.plans);  // or bounds were for nothing
}

TEST(Search, FindsTheBestThatFitsALittleMemory) {
  const SearchFolder folder(few_axes + "  constraints: {memory_share: 0.15}\n");
  const Exhaustive best = by_all_plans(folder);
  const Json found = folder.found();
  EXPECT_EQ(found["best"][0]["plan"], best.plan);
  EXPECT_GT(found["counts"]["without_memory"].get<std::size_t>(), 0U);
}

TEST(SlowSearch, FindsTheBestOfTwoThousandPlansOnSixtyFourGpus) {
  const SearchFolder folder("  axes: {cp: [1], zero: [1, 2, 3], micro_batch: [1, 2], schedule: [1f1b, interleaved-1f1b]}\n", R"(
model: llama3-8b
cluster: {preset: dgx-h100, gpus: 64}
parallelism: {tp: 2, sp: true, dp: 32}
training: {sequence: 8192, micro_batch: 1, global_batch: 128, precision: bf16}
)");
  const Exhaustive best = by_all_plans(folder);
  ASSERT_GE(best.plans, 2000U);
  EXPECT_DOUBLE_EQ(folder.found()["best"][0]["step_time_s"].get<double>(), best.step_time);
}

TEST(Search, IsTheSameForAnyNumberOfProcesses) {
  const SearchFolder one(few_axes), many(few_axes);
  EXPECT_EQ(one.found({"--jobs", "1"}), many.found({"--jobs", "5"}));
}

TEST(Search, KilledAtAnyMomentGoesOnAndFindsTheSame) {
  const SearchFolder undisturbed(few_axes);
  const CommandResult whole = undisturbed.search({"--jobs", "2"});
  ASSERT_EQ(whole.exit_code, done) << whole.err;
  const Json expected = undisturbed.found();
  std::mt19937 random(405);
  std::uniform_real_distribution<Seconds> anywhere(0.01, whole.wall);
  const SearchFolder folder(few_axes);
  for (int kill = 0; kill < 5; ++kill) {
    const CommandResult killed = folder.search({"--jobs", "2"}, {.kill_after = anywhere(random)});
    EXPECT_TRUE(killed.signal == SIGKILL || killed.exit_code == done) << killed.err;
  }
  EXPECT_EQ(folder.found(), expected);
}

/// The share of the best plan's time by which one that was not simulated may beat it.
void expect_proven_gap(const Json& found, const Exhaustive& best) {
  ASSERT_FALSE(found["gap"].is_null());
  const double gap = found["gap"], time = found["best"][0]["step_time_s"];
  EXPECT_GE(gap, 0);
  EXPECT_LT(gap, 1);
  EXPECT_LE(time * (1 - gap), best.step_time * (1 + 1e-9));
}

TEST(Search, ThatHasTimeEndsAsWithoutALimit) {
  const SearchFolder folder(few_axes), other(few_axes);
  Json within = folder.found({"--within", "1h"}), without = other.found();
  EXPECT_EQ(within["best_is_proven"], true);
  for (const char* key : {"best", "best_is_proven", "proven", "gap", "rules_of_thumb"})
    EXPECT_EQ(within[key], without[key]) << key;
  expect_proven_gap(without, by_all_plans(folder));
  EXPECT_EQ(without["gap"], 0);
}

// Each ends wherever it then is, and goes on from what those before have stored.
TEST(Search, EndsInTimeWithAProvenGapAndGoesOnFromThere) {
  const SearchFolder folder(few_axes);
  const Exhaustive best = by_all_plans(folder);
  bool is_proven = false;
  for (int limit = 10; !is_proven && limit < 20'000; limit += limit / 2) {
    const CommandResult run = folder.search({"--within", std::to_string(limit) + "ms", "--json", folder / "found.json"});
    if (run.exit_code != done) {
      EXPECT_EQ(run.exit_code, 1);
      EXPECT_THAT(run.err, HasSubstr("no plan that may win was simulated within"));
      continue;
    }
    const Json found = Json::parse(read_text_file(folder / "found.json", "a result"));
    is_proven = found["best_is_proven"];
    if (!found["gap"].is_null()) {
      expect_proven_gap(found, best);
      EXPECT_EQ(found["counts"]["left"] > 0, found["gap"] > 0);
    }
    if (!is_proven) {
      EXPECT_EQ(found["run"]["ended_early"], true);
      EXPECT_THAT(run.out, HasSubstr("time was over: "));
      EXPECT_EQ(found["proven"], 0);
    } else {
      EXPECT_EQ(found["best"][0]["plan"], best.plan);
    }
  }
  EXPECT_TRUE(is_proven);
}

TEST(Search, RefusesATimeThatIsNone) {
  const SearchFolder folder(few_axes);
  for (const char* wrong : {"0s", "-1s", "10", "10y", "soon", "nan s", "1e400s"}) {
    const CommandResult run = folder.search({std::string("--within=") + wrong});
    EXPECT_EQ(run.exit_code, wrong_input) << wrong << run.err;
    EXPECT_THAT(run.err, testing::MatchesRegex("tandem: [^\n]+\n")) << wrong;
  }
}

TEST(Search, ShowsEachRuleAndTheParts) {
  const SearchFolder folder(few_axes);
  const Json found = folder.found();
  for (const Json& rated : found["best"]) {
    double parts = rated["time_s"]["compute"].get<double>() + rated["time_s"]["bubble"].get<double>() +
                   rated["time_s"]["optimizer"].get<double>();
    for (const auto& [axis, time] : rated["time_s"]["exposed"].items()) parts += time.get<double>();
    EXPECT_NEAR(parts, rated["step_time_s"].get<double>(), 1e-9);
    EXPECT_LE(rated["bound_s"].get<double>(), rated["step_time_s"].get<double>() * (1 + 1e-9));
  }
  double before = 0;
  Bytes least = std::numeric_limits<Bytes>::max();
  for (const Json& rated : found["pareto"]) {
    EXPECT_GE(rated["step_time_s"].get<double>(), before);
    EXPECT_LT(rated["memory"]["peak_bytes"].get<Bytes>(), least);
    before = rated["step_time_s"];
    least = rated["memory"]["peak_bytes"];
  }
  bool knows_sp = false;
  for (const Json& rule : found["rules_of_thumb"]) {
    EXPECT_FALSE(rule["best"].is_null());
    knows_sp = knows_sp || rule["rule"] == "sp with tp";
  }
  EXPECT_TRUE(knows_sp);
  EXPECT_TRUE(found["own"]["is_among"].get<bool>());
}

TEST(Search, ExplainsWhatRulesAPlanOut) {
  const SearchFolder folder(few_axes);
  const CommandResult invalid = folder.search({"--explain", "tp=3"});
  EXPECT_EQ(invalid.exit_code, done);
  EXPECT_THAT(invalid.out, AllOf(HasSubstr("Why not tp=3"), HasSubstr("does not divide")));
  const CommandResult slower = folder.search({"--explain", "tp=4,pp=2,recompute=full"});
  EXPECT_THAT(slower.out, AllOf(HasSubstr("against the winner's"), HasSubstr("exposed tp"), HasSubstr("bubble")));
  expect_refusal(folder.search({"--explain", "ttp=4"}), wrong_input, {"--explain ttp=4", "`ttp`", "no axis", "`tp`"});
  expect_refusal(folder.search({"--explain", "sp=maybe"}), wrong_input,
                 {"--explain sp=maybe", "plan.sp", "expected true or false"});
}

TEST(Search, NamesTheNearestPlanAndItsBytesWhereNoneFits) {
  const SearchFolder folder(few_axes + "  constraints: {memory_share: 0.01}\n");
  const CommandResult run = folder.search();
  EXPECT_EQ(run.exit_code, does_not_fit);
  EXPECT_THAT(run.err, AllOf(HasSubstr("no plan of"), HasSubstr("the nearest, tp="), HasSubstr("lacks"), HasSubstr(" bytes (")));
}

TEST(Search, NamesThePairThatContradictsItself) {
  const SearchFolder chunks("  axes: {schedule: [1f1b], vpp: [2], pp: [2]}\n");
  expect_refusal(chunks.search(), wrong_input,
                 {"searched.yaml:7", "search.axes.vpp [2]", "search.axes.schedule [1f1b]", "contradict"});
  const SearchFolder nodes("  axes: {tp: [16]}\n  gpus: 16\n  constraints: {tp_in_node: true}\n");
  expect_refusal(nodes.search(), wrong_input, {"search.axes.tp [16]", "tp_in_node", "contradict"});
  const SearchFolder alone("  axes: {tp: [3]}\n");
  expect_refusal(alone.search(), wrong_input, {"searched.yaml:7", "search.axes.tp [3]", "contradicts the scenario"});
}

TEST(Search, WritesTheBestPlanAsAScenario) {
  const SearchFolder folder(few_axes);
  const Json found = folder.found({"--write", folder / "best"});
  const CommandResult run = run_tandem({"simulate", folder / "best/scenario.yaml", "--json", "-"});
  ASSERT_EQ(run.exit_code, done) << run.err;
  EXPECT_DOUBLE_EQ(Json::parse(run.out)["step_time_s"].get<double>(), found["best"][0]["step_time_s"].get<double>());
}

// A program that reads the result gives them to --set as they stand.
TEST(Search, FieldsOfAPlanAreValuesOfTheScenario) {
  const SearchFolder folder("  axes: {tp: [2], pp: [1], cp: [1], sp: [true, false], micro_batch: [1], recompute: [none]}\n");
  const Json found = folder.found();
  std::set<bool> sp;
  for (const Json& rated : found["best"]) {
    ASSERT_TRUE(rated["fields"]["parallelism.sp"].is_boolean()) << rated["fields"];
    sp.insert(rated["fields"]["parallelism.sp"].get<bool>());
    std::vector<std::string> arguments{"simulate", folder.scenario(), "--json", "-"};
    for (const auto& [path, value] : rated["fields"].items())
      arguments.insert(arguments.end(), {"--set", path + "=" + value.dump()});
    const CommandResult run = run_tandem(arguments);
    ASSERT_EQ(run.exit_code, done) << run.err;
    EXPECT_DOUBLE_EQ(Json::parse(run.out)["step_time_s"].get<double>(), rated["step_time_s"].get<double>()) << rated["plan"];
  }
  EXPECT_EQ(sp.size(), 2U);
}

TEST(Search, ByPriceTakesTheCheapestNumberOfGpus) {
  const SearchFolder folder(
      "  axes: {tp: [1, 2], pp: [1, 2], cp: [1], zero: [1], micro_batch: [1], schedule: [1f1b], recompute: [none]}\n"
      "  gpus: [4, 16]\n  objective: {price_per_gpu_hour: 3.6}\n");
  const Json found = folder.found();
  for (const Json& rated : found["best"]) {
    const double gpus = rated["fields"]["cluster.gpus"], seconds = rated["step_time_s"];
    constexpr double tokens = 16 * 2048;
    EXPECT_NEAR(rated["cost_per_million_tokens"].get<double>(), 3.6 / 3600 * gpus * seconds / tokens * 1e6, 1e-9);
  }
  for (std::size_t i = 1; i < found["best"].size(); ++i)
    EXPECT_LE(found["best"][i - 1]["cost_per_million_tokens"].get<double>(),
              found["best"][i]["cost_per_million_tokens"].get<double>());
}

}  // namespace
}  // namespace tandem::cli::search_test
