#include "tests/studies/searched.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>

#include "scenarios/reading/document.h"
#include "studies/search/memory_bound.h"
#include "studies/search/plan_score.h"
#include "studies/search/step_bound.h"
#include "studies/step/simulated_step.h"

namespace tandem::studies {

void expect_bounds_hold(const std::string& text, std::size_t draws, unsigned seed, double least_median, double least_memory) {
  const Searched searched(text);
  const PlanSpace space(searched.spec);
  std::vector<Plan> plans = space.all();
  ASSERT_FALSE(plans.empty());
  std::mt19937 random(seed);
  std::ranges::shuffle(plans, random);
  // TANDEM_DRAWS=3: three times as many, as far as there are. TANDEM_ROWS=1: prints each.
  const std::size_t least_draws = draws;
  if (const char* times = std::getenv("TANDEM_DRAWS")) draws *= std::stoul(times);
  StageCostModel model;
  Schedules schedules;
  std::vector<double> time_ratios, memory_ratios;
  for (std::size_t i = 0; i < plans.size() && time_ratios.size() < draws; ++i) {
    const std::string name = to_text(plans[i], space.choices());
    SCOPED_TRACE(name);
    Scenario scenario;
    try {
      scenario = read_document(document_of(plans[i], space.choices(), searched.spec), "searched");
    } catch (const InputError&) {
      continue;  // what the arithmetic of the space leaves to the validator
    }
    const Scenario planned = scenario_of(plans[i], space.choices(), searched.spec.scenario);
    const StageCosts costs = model.of(planned);
    const Seconds coarse = coarse_step_bound(planned, costs), fine = step_bound(planned, costs, schedules);
    const MemoryBound memory = memory_bound(planned, costs, schedules);
    const StepResult result = simulate_step(scenario, true).result;
    constexpr double rounding = 1e-9;
    EXPECT_LE(coarse, result.step_time * (1 + rounding));
    EXPECT_LE(fine, result.step_time * (1 + rounding));
    EXPECT_LE(memory.peak, result.peak_memory());
    time_ratios.push_back(std::max(coarse, fine) / result.step_time);
    memory_ratios.push_back(static_cast<double>(memory.peak) / static_cast<double>(result.peak_memory()));
    if (std::getenv("TANDEM_ROWS") != nullptr)
      std::cout << time_ratios.back() << ' ' << coarse / result.step_time << ' ' << memory_ratios.back() << ' ' << name << '\n';
  }
  ASSERT_GE(time_ratios.size(), least_draws) << "of " << plans.size() << " plans, too few can be simulated";
  std::ranges::sort(time_ratios);
  std::ranges::sort(memory_ratios);
  const auto median = [](const std::vector<double>& values) { return values[values.size() / 2]; };
  const auto print = [&](const char* what, const std::vector<double>& values) {
    std::cout << what << values.front() << ' ' << median(values) << ' ' << values.back();
  };
  std::cout << time_ratios.size() << " plans; bound / simulated, least, median and most";
  print(": time ", time_ratios);
  print(", memory ", memory_ratios);
  std::cout << '\n';
  EXPECT_GT(median(time_ratios), least_median);  // a bound of nothing would hold, too
  EXPECT_GT(median(memory_ratios), least_memory);
}

}  // namespace tandem::studies
