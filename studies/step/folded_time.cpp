#include "studies/step/folded_time.h"

#include <spdlog/spdlog.h>

#include <cmath>
#include <utility>

#include "runtime/backend_names.h"
#include "scenarios/schedules/shorter_schedule.h"
#include "sim/steady_state.h"

namespace tandem::studies {
namespace {

using scenarios::ShorterSchedule;

/// Of all micro-batches: where more do not settle, too much was tried in vain.
constexpr double worth_trying = 0.4;
/// Micro-batches beside those that fill the pipeline and empty it, during which the steady state settles and shows that it has.
constexpr std::int64_t few_to_settle = 8, many_to_settle = 24;

bool is_one_step_of_one_kind(const Scenario& scenario, const StepRange& steps) {
  return steps.count == 1 && !scenario.training.local_steps() && !scenario.jitter.enabled();
}

std::optional<SimulatedStep> simulate_shorter(const Scenario& scenario, const World& world, const SimulationOptions& options,
                                              StepRange steps, const ShorterSchedule& shorter) {
  steps.micro_batches = shorter.micro_batches;
  SimulatedStep step{.dag = lower(scenario, world, steps), .timeline = {}, .result = {}};
  SimulationRun run = simulate(step.dag, options.collectives);
  step.timeline = std::move(run.timeline);
  const auto repeat =
      sim::find_repeat(step.dag, step.timeline, {.micro_batches = shorter.period_of_chunk, .left_out = shorter.left_out});
  spdlog::debug("{} micro-batches {}", shorter.micro_batches, repeat ? "settle" : "do not settle");
  if (!repeat) return {};
  step.timeline.repeat = *repeat;
  const RunFacts facts{
      .backend = simgrid_backend, .collectives = name_of(options.collectives), .folded = true, .peak_rss = run.peak_rss};
  step.result = summarize(step.dag, step.timeline, scenario.training.precision, facts);
  const bool is_whole = std::isfinite(step.result.upper_bound) && step.result.device_memory;
  if (!is_whole) spdlog::debug("its {} settle", step.result.device_memory ? "bound does not" : "memory does not");
  return is_whole ? std::optional(std::move(step)) : std::nullopt;
}

}  // namespace

std::optional<SimulatedStep> simulate_folded_in_time(const Scenario& scenario, const World& world,
                                                     const SimulationOptions& options, const StepRange& steps) {
  if (options.collectives != Collectives::fluid || !is_one_step_of_one_kind(scenario, steps)) return {};
  const auto all = static_cast<double>(scenario.training.micro_batches(scenario.parallelism));
  for (const std::int64_t to_settle : {few_to_settle, many_to_settle}) {
    const auto micro_batches = static_cast<std::int32_t>(2 * scenario.parallelism.pp + to_settle);
    const auto shorter = scenarios::shorter_schedule(scenario, micro_batches, sim::most_periods_in_stretch);
    if (!shorter || static_cast<double>(shorter->micro_batches) > worth_trying * all) continue;
    if (auto step = simulate_shorter(scenario, world, options, steps, *shorter)) return step;
  }
  return {};
}

StepRange steps_in_short(const Scenario& scenario) {
  const auto shorter = scenarios::shorter_schedule(scenario, static_cast<std::int32_t>(4 * scenario.parallelism.pp));
  return {.micro_batches = shorter ? shorter->micro_batches : 0};
}

}  // namespace tandem::studies
