#include "studies/step/relief.h"

#include <spdlog/fmt/fmt.h>

#include "studies/step/simulated_step.h"
#include "cli/terminal/numbers.h"
#include "cli/terminal/page.h"
#include "scenarios/reading/load.h"

namespace tandem {
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

Relief try_out(const StepOptions& options, const Change& change, ProgressBar* bar) {
  std::vector<std::string> overrides = options.overrides;
  overrides.insert(overrides.end(), change.begin(), change.end());
  const Scenario scenario = load_scenario(options.scenario, overrides);
  const StepResult result = simulate_step(scenario, true, {.bar = bar}).result;
  Relief relief{.change = {}, .peak = result.peak_memory(), .step_time = result.step_time};
  for (const std::string& option : change) relief.change += (relief.change.empty() ? "--set " : " --set ") + option;
  return relief;
}

}  // namespace

std::vector<Relief> memory_relief(const StepOptions& options, const Scenario& scenario, Bytes peak, ProgressBar* bar) {
  std::vector<Relief> reliefs;
  for (const Change& change : candidates(scenario)) {
    try {
      const Relief relief = try_out(options, change, bar);
      if (relief.peak < peak) reliefs.push_back(relief);
    } catch (const InputError&) {
      // The scenario does not admit this change, for a reason that is not the reader's concern here.
    }
  }
  return reliefs;
}

std::string to_text(const std::vector<Relief>& reliefs, const Screen& screen) {
  if (reliefs.empty()) return "";
  Table table({{"GB"}, {"step time"}, {"", Column::Kind::note}});
  for (const Relief& relief : reliefs) table.add({{gigabytes(relief.peak)}, {duration(relief.step_time)}, {relief.change}});
  Page page(screen);
  return page.heading("What would relieve it, each alone").table(table).text();
}

}  // namespace tandem
