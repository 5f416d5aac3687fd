// What makes a step fit: every claim is that of a fresh simulation of the changed scenario, the plan is the fastest that
// simulating everything would find, and where nothing fits it says so.
#include "studies/relief/relief.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "scenarios/reading/load.h"
#include "studies/relief/levers.h"
#include "studies/step/simulated_step.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::studies::relief_test {
namespace {

/// A scenario's file, and its step as it stands.
class Tight {
 public:
  explicit Tight(const std::string& text)
      : path_(written(text)),
        scenario_(load_scenario(path_, {})),
        step_(simulate_step(scenario_, true, {.fold_time = true}).result) {}

  const Scenario& scenario() const { return scenario_; }
  const StepResult& step() const { return step_; }
  Bytes peak() const { return step_.peak_memory(); }

  ReliefResult relief(Bytes limit) const { return find_relief({path_, {}}, scenario_, step_, limit, {.jobs = 2}); }

  /// The step with these changes, from the file; nothing where they make no scenario.
  std::optional<StepResult> with(const std::vector<std::string>& change) const {
    try {
      return simulate_step(load_scenario(path_, change), true, {.fold_time = true}).result;
    } catch (const InputError&) {
      return {};
    }
  }

  void expect_true(const Relief& relief, Bytes limit) const {
    SCOPED_TRACE(set_options(relief.change));
    const std::optional<StepResult> fresh = with(relief.change);
    ASSERT_TRUE(fresh);
    EXPECT_EQ(relief.peak, fresh->peak_memory());
    EXPECT_DOUBLE_EQ(relief.step_time, fresh->step_time);
    EXPECT_EQ(relief.fits, fresh->peak_memory() <= limit);
    EXPECT_EQ(fresh->gpus, step_.gpus);
    EXPECT_EQ(fresh->tokens, step_.tokens);
  }

 private:
  TemporaryFolder folder_;
  std::string path_;
  Scenario scenario_;
  StepResult step_;

  std::string written(const std::string& text) const {
    std::string path = folder_ / "tight.yaml";
    std::ofstream(path) << text;
    return path;
  }
};

const std::string training = "training: {sequence: 1024, micro_batch: 4, global_batch: 128, schedule: 1f1b}\n";

const std::string mixture =
    "model: {layers: 8, hidden: 512, heads: 8, kv_heads: 4, ffn: 1024, vocab: 4096, moe: {experts: 8, top_k: 2}}\n"
    "cluster: {preset: dgx-h100, gpus: 64, host: {link_GBps: 50, memory_GBps: 400}}\n"
    "parallelism: {tp: 2, pp: 2, dp: 16, ep: 2, zero: 0}\n" +
    training;

const std::string with_own_axis =
    "model: {layers: 8, hidden: 512, heads: 8, kv_heads: 4, ffn: 1024, vocab: 4096, moe: {experts: 8, top_k: 2}}\n"
    "cluster: {preset: dgx-h100, gpus: 64}\n"
    "parallelism: {tp: 2, sp: true, pp: 2, dp: 8, ep: 2, expert_axis: own}\n" +
    training;

const std::string interleaved =
    "model: {layers: 8, hidden: 512, heads: 8, kv_heads: 4, ffn: 1024, vocab: 4096}\n"
    "cluster: {preset: dgx-h100, gpus: 32}\n"
    "parallelism: {tp: 2, sp: true, pp: 2, vpp: 2, dp: 8}\n"
    "training: {sequence: 1024, micro_batch: 2, global_batch: 64, schedule: interleaved-1f1b, recompute: full, recompute_every: "
    "4}\n";

/// More stages want another layout, or none.
const std::string laid_out =
    "model: {layers: 8, hidden: 512, heads: 8, kv_heads: 4, ffn: 1024, vocab: 4096, mtp_depth: 1}\n"
    "cluster: {preset: dgx-h100, gpus: 64}\n"
    "parallelism: {tp: 2, sp: true, pp: 4, dp: 8, pipeline_layout: \"Ett|t*6|m|L\"}\n" +
    training;

/// GPUs that follow from the mesh: a lever that takes replicas has to say how many are left.
const std::string without_gpus =
    "model: {layers: 4, hidden: 512, heads: 8, kv_heads: 4, ffn: 1024, vocab: 4096}\n"
    "cluster: {preset: dgx-h100}\n"
    "parallelism: {tp: 2, sp: true, dp: 16}\n"
    "training: {sequence: 1024, micro_batch: 2, global_batch: 64}\n";

class EveryTightScenario : public testing::TestWithParam<std::string> {};

TEST_P(EveryTightScenario, IsRelievedAsAFreshSimulationSays) {
  const Tight tight(GetParam());
  for (const double share : {0.8, 0.4}) {
    SCOPED_TRACE(share);
    const auto limit = static_cast<Bytes>(share * static_cast<double>(tight.peak()));
    const ReliefResult relief = tight.relief(limit);
    EXPECT_FALSE(relief.alone.empty());
    std::set<std::string> seen;
    for (const Relief& alone : relief.alone) {
      ASSERT_EQ(alone.levers.size(), 1U);
      EXPECT_TRUE(seen.insert(alone.levers.front()).second) << "twice: " << alone.levers.front();
      EXPECT_LT(alone.peak, tight.peak());
      tight.expect_true(alone, limit);
    }
    ASSERT_TRUE(relief.plan);
    EXPECT_TRUE(relief.plan->fits);
    EXPECT_FALSE(relief.least);
    tight.expect_true(*relief.plan, limit);
    for (const Relief& alone : relief.alone) EXPECT_TRUE(!alone.fits || alone.step_time >= relief.plan->step_time);
  }
}

TEST_P(EveryTightScenario, SaysWhereNothingFits) {
  const Tight tight(GetParam());
  constexpr Bytes limit = 1000;
  const ReliefResult relief = tight.relief(limit);
  EXPECT_FALSE(relief.plan);
  ASSERT_TRUE(relief.least);
  EXPECT_FALSE(relief.least->fits);
  EXPECT_LT(relief.least->peak, tight.peak());
  tight.expect_true(*relief.least, limit);
  for (const Relief& alone : relief.alone) EXPECT_GE(alone.peak, relief.least->peak);
}

INSTANTIATE_TEST_SUITE_P(Relief, EveryTightScenario,
                         testing::Values(mixture, with_own_axis, interleaved, laid_out, without_gpus));

/// Every lever has a setting that the mixture admits, keeps GPUs and tokens, and (but for sp, which is about norms) takes memory
/// off.
TEST(Levers, AllDoSomething) {
  const Tight tight(mixture);
  for (const Lever& lever : levers()) {
    SCOPED_TRACE(lever.name);
    std::size_t admitted = 0;
    for (const LeverSetting& setting : lever.settings(tight.scenario())) {
      std::vector<std::string> change = setting.changes;
      if (setting.replicas > 1) change.push_back("parallelism.dp=" + std::to_string(16 / setting.replicas));
      const std::optional<StepResult> step = tight.with(change);
      if (!step) continue;
      ++admitted;
      EXPECT_EQ(step->gpus, 64);
      EXPECT_LT(step->peak_memory(), tight.peak()) << set_options(change);
    }
    EXPECT_GT(admitted, 0U);
  }
}

TEST(Levers, MoreStagesKeepALayoutThatFitsThem) {
  const auto changes = [](const std::string& text) {
    std::vector<std::vector<std::string>> all;
    for (const Lever& lever : levers())
      if (lever.name == name_of(Axis::pp))
        for (const LeverSetting& setting : lever.settings(Tight(text).scenario())) all.push_back(setting.changes);
    return all;
  };
  using testing::Contains;
  for (const std::vector<std::string>& change : changes(laid_out)) EXPECT_THAT(change, Contains("parallelism.pipeline_layout="));
  std::string chunks = laid_out;
  chunks.replace(chunks.find("pp: 4, dp: 8"), 12, "pp: 2, vpp: 2, dp: 16");
  chunks.replace(chunks.find("tt|t*6|m|L"), 10, "tt|t*6||mL");
  chunks.replace(chunks.find("schedule: 1f1b"), 14, "schedule: interleaved-1f1b");
  EXPECT_THAT(changes(chunks).front(),
              testing::AllOf(Contains("parallelism.vpp=1"), testing::Not(Contains("parallelism.pipeline_layout="))));
}

TEST(Levers, RecomputeAddsToWhatIsRecomputed) {
  const auto settings = [](const std::string& recompute) {
    std::vector<std::vector<std::string>> changes;
    const Tight tight(
        "model: {layers: 8, hidden: 512, heads: 8, kv_heads: 4, ffn: 1024, vocab: 4096}\n"
        "cluster: {preset: dgx-h100, gpus: 8}\n"
        "training: {sequence: 1024, global_batch: 8, " +
        recompute + "}\n");
    for (const LeverSetting& setting : levers().front().settings(tight.scenario())) changes.push_back(setting.changes);
    return changes;
  };
  using Changes = std::vector<std::string>;
  const Changes fourth{"training.recompute=full", "training.recompute_every=4"};
  const Changes second{"training.recompute=full", "training.recompute_every=2"}, all{"training.recompute=full"};
  const auto segment = [](const std::string& layers) {
    return Changes{"training.recompute=full", "training.recompute_segment=" + layers};
  };
  const auto segment_of_all = [&](const std::string& layers) {
    Changes changes = segment(layers);
    changes.emplace_back("training.recompute_every=");
    return changes;
  };
  EXPECT_THAT(settings("recompute: none"),
              testing::ElementsAre(Changes{"training.recompute=[attention]"}, Changes{"training.recompute=[norm, activation]"},
                                   Changes{"training.recompute=[norm, activation, attention]"},
                                   Changes{"training.recompute=[norm, activation, mlp]"}, fourth, second, all, segment("2"),
                                   segment("4"), segment("8")));
  EXPECT_THAT(settings("recompute: selective"),
              testing::ElementsAre(Changes{"training.recompute=[norm, activation, attention]"},
                                   Changes{"training.recompute=[norm, activation, attention, mlp]"}, fourth, second, all,
                                   segment("2"), segment("4"), segment("8")));
  EXPECT_THAT(settings("recompute: full, recompute_every: 4"),
              testing::ElementsAre(second, Changes{"training.recompute=full", "training.recompute_every="}, segment_of_all("2"),
                                   segment_of_all("4"), segment_of_all("8")));
  EXPECT_THAT(settings("recompute: full"), testing::ElementsAre(segment("2"), segment("4"), segment("8")));
}

/// No single setting and no two of different levers that fit are faster than the plan.
TEST(Relief, PlanIsTheFastestOfAllPairs) {
  const Tight tight(
      "model: {layers: 4, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14336, vocab: 32000}\n"
      "cluster: {preset: dgx-h100}\n"
      "parallelism: {tp: 2, sp: true, dp: 16}\n"
      "training: {sequence: 4096, micro_batch: 2, global_batch: 64}\n");
  const auto limit = tight.peak() / 2;
  Seconds best = 1e9;
  std::vector<std::pair<std::size_t, LeverSetting>> settings;
  for (std::size_t lever = 0; lever < levers().size(); ++lever)
    for (const LeverSetting& setting : levers()[lever].settings(tight.scenario())) settings.emplace_back(lever, setting);
  for (const auto& [lever, setting] : settings) {
    for (const auto& [other, second] : settings) {
      if (other < lever) continue;
      std::vector<std::string> change = setting.changes;
      if (other > lever) change.insert(change.end(), second.changes.begin(), second.changes.end());
      const std::int64_t replicas = setting.replicas * (other > lever ? second.replicas : 1);
      if (replicas > 16) continue;
      change.push_back("parallelism.dp=" + std::to_string(16 / replicas));
      const std::optional<StepResult> step = tight.with(change);
      if (step && step->peak_memory() <= limit) best = std::min(best, step->step_time);
    }
  }
  const ReliefResult relief = tight.relief(limit);
  ASSERT_TRUE(relief.plan);
  EXPECT_DOUBLE_EQ(relief.plan->step_time, best);
}

}  // namespace
}  // namespace tandem::studies::relief_test
