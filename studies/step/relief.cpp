#include "studies/step/relief.h"

#include <spdlog/fmt/fmt.h>

#include "scenarios/reading/load.h"
#include "studies/step/simulated_step.h"

namespace tandem::studies {
namespace {

using Change = std::vector<std::string>;

std::vector<Change> candidates(const Scenario& scenario) {
  const ParallelismSpec& p = scenario.parallelism;
  const TrainingSpec& t = scenario.training;
  std::vector<Change> changes{{"training.recompute=selective"}};
  if (p.dp % 2 == 0) {
    changes.push_back({fmt::format("parallelism.cp={}", 2 * p.cp), fmt::format("parallelism.dp={}", p.dp / 2)});
  }
  if (p.tp > 1 && !p.sp) changes.push_back({"parallelism.sp=true"});
  if (t.micro_batch % 2 == 0) changes.push_back({fmt::format("training.micro_batch={}", t.micro_batch / 2)});
  return changes;
}

Relief try_out(const std::string& file, std::vector<std::string> overrides, const Change& change, Progress* progress) {
  overrides.insert(overrides.end(), change.begin(), change.end());
  const Scenario scenario = load_scenario(file, overrides);
  const StepResult result = simulate_step(scenario, true, {.progress = progress}).result;
  Relief relief{.change = {}, .peak = result.peak_memory(), .step_time = result.step_time};
  for (const std::string& option : change) relief.change += (relief.change.empty() ? "--set " : " --set ") + option;
  return relief;
}

}  // namespace

std::vector<Relief> memory_relief(const std::string& file, const std::vector<std::string>& overrides, const Scenario& scenario,
                                  Bytes peak, Progress* progress) {
  std::vector<Relief> reliefs;
  for (const Change& change : candidates(scenario)) {
    try {
      const Relief relief = try_out(file, overrides, change, progress);
      if (relief.peak < peak) reliefs.push_back(relief);
    } catch (const InputError&) {
      // The scenario does not admit this change, for a reason that is not the reader's concern here.
    }
  }
  return reliefs;
}

}  // namespace tandem::studies
