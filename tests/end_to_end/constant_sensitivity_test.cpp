// How much predictions depend on each constant that was fitted or assumed. Of every source's runs with one GPU, precision and
// framework the smallest is simulated anew with the constant 10 % larger. `./dev bench sensitivity` does so for all and keeps the
// result in bench/accuracy/sensitivity.csv; without TANDEM_SENSITIVITY, a few small runs are enough.
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <set>
#include <tuple>

#include "studies/runner/step_runner.h"
#include "studies/validate/plausible.h"
#include "studies/validate/score.h"
#include "studies/validate/scored_runs.h"
#include "tests/end_to_end/accuracy.h"
#include "tests/end_to_end/step_constants.h"

namespace tandem::studies::constant_sensitivity_test {
namespace {

constexpr double larger = 1.1;

/// A measured run, as one of its scenarios.
struct Sample {
  std::string source;
  Scenario scenario;
  bool has_experts = false;
  double error = 0;  ///< of the prediction that is kept: ln(predicted / measured)
};

double size_of(const Scenario& s) {
  return static_cast<double>(s.model.layers * s.parallelism.world_size()) * static_cast<double>(s.training.global_batch);
}

/// Of each source, GPU, precision and framework the run that is simulated soonest.
std::vector<Sample> samples() {
  std::map<std::tuple<std::string, std::string, std::string, std::string>, Sample> smallest;
  for (const std::string table : {"runs", "runs_2025"}) {
    const std::string folder = TANDEM_SOURCE_DIR "/bench/accuracy/";
    const ScoredRuns runs = join_scored_runs(folder + table + ".csv", folder + table + ".scored.csv");
    for (std::size_t i = 0; i < runs.rows.size(); ++i) {
      const RunRow& row = runs.rows[i];
      const Scenario scenario = plausible_runs(row).front().run.scenario;
      const Sample sample{row.text("source"), scenario, scenario.model.moe.experts > 0, std::log1p(*runs.validated[i].error())};
      const std::tuple key{sample.source, row.name("gpu"), row.name("precision"), row.name("framework")};
      const auto [found, is_new] = smallest.try_emplace(key, sample);
      if (!is_new && size_of(scenario) < size_of(found->second.scenario)) found->second = sample;
    }
  }
  std::vector<Sample> all;
  for (auto& [key, sample] : smallest) all.push_back(std::move(sample));
  return all;
}

/// One of each generation of GPUs and precision.
std::vector<Sample> small(std::vector<Sample> all) {
  constexpr std::size_t of_each = 1;
  std::ranges::sort(all, {}, [](const Sample& sample) { return size_of(sample.scenario); });
  std::map<std::pair<Architecture, DType>, std::size_t> taken;
  std::vector<Sample> few;
  for (Sample& sample : all)
    if (taken[{sample.scenario.cluster.gpu.architecture, sample.scenario.training.precision}]++ < of_each)
      few.push_back(std::move(sample));
  return few;
}

std::vector<std::optional<Seconds>> step_times(const std::vector<Scenario>& scenarios) {
  std::vector<StepJob> jobs;
  for (const Scenario& scenario : scenarios) jobs.push_back({.scenario = scenario, .text = ""});
  std::vector<std::optional<Seconds>> times;
  for (const StepOutcome& outcome : StepRunner(2).run(std::move(jobs)))
    times.push_back(outcome.result() == nullptr ? std::nullopt : std::optional(outcome.result()->step_time));
  return times;
}

/// What a constant does to the runs that have it.
struct Sensitivity {
  std::size_t runs = 0;
  double median = 0;                         ///< of what it moves ln(step time) by
  double lowest = 0, highest = 0;            ///< of the same, or 0
  double dense_before = 0, dense_after = 0;  ///< median error of all dense samples
  double experts_before = 0, experts_after = 0;
};

double median_error(const std::vector<Sample>& samples, bool experts, const std::vector<double>& moved) {
  std::vector<ScoredError> errors;
  for (std::size_t i = 0; i < samples.size(); ++i)
    if (samples[i].has_experts == experts) errors.push_back({samples[i].source, std::expm1(samples[i].error + moved[i])});
  return score_of(errors).median;
}

Sensitivity sensitivity_of(const StepConstant& constant, const std::vector<Sample>& samples,
                           const std::vector<std::optional<Seconds>>& before) {
  std::vector<Scenario> changed;
  std::vector<std::size_t> of;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    Scenario scenario = samples[i].scenario;
    if (!before[i] || !constant.scale(scenario, larger)) continue;
    changed.push_back(std::move(scenario));
    of.push_back(i);
  }
  std::vector<double> moved(samples.size(), 0);
  std::vector<WeightedValue> sizes;
  Sensitivity result{.runs = changed.size()};
  const std::vector<std::optional<Seconds>> after = step_times(changed);
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (!after[i]) continue;
    moved[of[i]] = std::log(*after[i] / *before[of[i]]);
    sizes.push_back({moved[of[i]], 1});
    result.lowest = std::min(result.lowest, moved[of[i]]);
    result.highest = std::max(result.highest, moved[of[i]]);
  }
  if (!sizes.empty()) result.median = weighted_quantile(sizes, 0.5);
  const std::vector<double> unmoved(samples.size(), 0);
  result.dense_before = median_error(samples, false, unmoved);
  result.dense_after = median_error(samples, false, moved);
  result.experts_before = median_error(samples, true, unmoved);
  result.experts_after = median_error(samples, true, moved);
  return result;
}

std::vector<Scenario> scenarios_of(const std::vector<Sample>& samples) {
  std::vector<Scenario> scenarios;
  for (const Sample& sample : samples) scenarios.push_back(sample.scenario);
  return scenarios;
}

/// What follows from the architecture, and no published step feels: products there wait for the tensor cores or for memory.
const std::set<std::string> moves_nothing{"ampere products feed bf16", "ampere products feed fp16"};

// What is faster makes no step longer, and what takes longer none shorter. Every constant moves some step, but where said.
TEST(ConstantSensitivity, OfPublishedSteps) {
  const bool all_of_them = std::getenv("TANDEM_SENSITIVITY") != nullptr;
  const std::vector<Sample> chosen = all_of_them ? samples() : small(samples());
  const std::vector<std::optional<Seconds>> before = step_times(scenarios_of(chosen));
  std::string text =
      "constant,runs,step_time_percent,least_percent,most_percent,dense_median,dense_median_after,experts_median,experts_median_"
      "after\n";
  for (const StepConstant& constant : step_constants()) {
    const Sensitivity s = sensitivity_of(constant, chosen, before);
    if (s.runs == 0) continue;
    // A kernel that ends sooner may meet other traffic; NCCL chooses by its own prediction, which a latency is part of.
    const double anomaly = constant.name == "NVLink latency" ? 0.02 : constant.name == "NIC latency" ? 0.006 : 0.002;
    EXPECT_LE(constant.is_rate ? s.highest : -s.lowest, anomaly) << constant.name;
    if (all_of_them) {
      EXPECT_EQ(std::max(s.highest, -s.lowest) <= 1e-6, moves_nothing.contains(constant.name)) << constant.name;
    }
    text += fmt::format("{},{},{:+.2f},{:+.2f},{:+.2f},{:.1f},{:.1f},{:.1f},{:.1f}\n", constant.name, s.runs, 100 * s.median,
                        100 * s.lowest, 100 * s.highest, 100 * s.dense_before, 100 * s.dense_after, 100 * s.experts_before,
                        100 * s.experts_after);
  }
  if (!all_of_them) return;
  std::cout << text;
  std::ofstream(testing::TempDir() + "sensitivity.csv") << text;
}

}  // namespace
}  // namespace tandem::studies::constant_sensitivity_test
