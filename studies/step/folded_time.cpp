#include "studies/step/folded_time.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "runtime/backend_names.h"
#include "scenarios/schedules/shorter_schedule.h"
#include "sim/steady_state.h"
#include "studies/step/graph_facts.h"

namespace tandem::studies {
namespace {

using scenarios::ShorterSchedule;

/// So many micro-batches may show a steady state; not tried where they are more than this share of all.
struct Try {
  std::int64_t micro_batches = 0;
  double most_of_all = 0.4;  ///< more cost too much where they do not settle
};

/// Beside those that fill the pipeline and empty it, few micro-batches show most steady states, and some need more; where
/// micro-batches enter at both ends, most of all. Where context-parallel ranks exchange keys while others exchange tokens, none
/// is tried: in deepseek-v3.2-2k stages take turns in cycles of 14 micro-batches, which are alike too late.
std::vector<Try> tries(const Scenario& scenario, std::int64_t all) {
  const ParallelismSpec& p = scenario.parallelism;
  const std::int64_t filling = 2 * p.pp;
  if (scenario.training.schedule != ScheduleKind::dualpipe)
    return {{.micro_batches = filling + 8}, {.micro_batches = filling + 24}};
  if (p.cp > 1) return {};
  const Try large{.micro_batches = filling + 96, .most_of_all = 0.55}, small{.micro_batches = filling + 32, .most_of_all = 0.45};
  return {static_cast<double>(large.micro_batches) <= large.most_of_all * static_cast<double>(all) ? large : small};
}

bool is_one_step_of_one_kind(const Scenario& scenario, const StepRange& steps) {
  return steps.count == 1 && !scenario.training.local_steps() && !scenario.jitter.enabled();
}

/// The shorter schedules to try, one after the other.
std::vector<ShorterSchedule> shorter_schedules(const Scenario& scenario) {
  const std::int64_t all = scenario.training.micro_batches(scenario.parallelism);
  std::vector<ShorterSchedule> schedules;
  for (const Try& one : tries(scenario, all)) {
    const auto shorter =
        scenarios::shorter_schedule(scenario, static_cast<std::int32_t>(one.micro_batches), sim::most_periods_in_stretch);
    if (shorter && static_cast<double>(shorter->micro_batches) <= one.most_of_all * static_cast<double>(all))
      schedules.push_back(*shorter);
  }
  return schedules;
}

sim::Periods periods_of(const ShorterSchedule& shorter) {
  const bool has_two_copies = shorter.period_of_chunk < shorter.period;
  return {.micro_batches = shorter.period_of_chunk,
          .left_out = shorter.left_out,
          .second_half_from = has_two_copies ? shorter.micro_batches / 2 : 0};
}

/// Whether a step that was folded by this schedule repeats itself so.
bool leaves_out_as_much(const ShorterSchedule& shorter, const Repeat& repeat) {
  return repeat.times * repeat.micro_batches == shorter.left_out * shorter.period_of_chunk;
}

std::optional<SimulatedStep> simulate_shorter(const Scenario& scenario, const World& world, const SimulationOptions& options,
                                              StepRange steps, const ShorterSchedule& shorter) {
  steps.micro_batches = shorter.micro_batches;
  steps.copies_ranks = true;
  SimulatedStep step{.dag = lower(scenario, world, steps), .timeline = {}, .result = {}};
  SimulationRun run = simulate(step.dag, options.collectives);
  step.timeline = std::move(run.timeline);
  const auto repeat = sim::find_repeat(step.dag, step.timeline, periods_of(shorter));
  spdlog::debug("{} micro-batches {}", shorter.micro_batches, repeat ? "settle" : "do not settle");
  if (!repeat) return {};
  step.timeline.repeat = *repeat;
  if (options.simulated) options.simulated({world, step.dag, step.timeline, true, options.collectives});
  const RunFacts facts{
      .backend = simgrid_backend, .collectives = name_of(options.collectives), .folded = true, .peak_rss = run.peak_rss};
  GraphFacts graph(step.dag, step.timeline);
  step.result = summarize(step.dag, step.timeline, graph, scenario.training.precision, facts,
                          options.memory_over_time ? &step.memory : nullptr);
  const bool is_whole = std::isfinite(step.result.upper_bound) && step.result.device_memory;
  if (!is_whole) spdlog::debug("its {} settle", step.result.device_memory ? "bound does not" : "memory does not");
  return is_whole ? std::optional(std::move(step)) : std::nullopt;
}

}  // namespace

std::optional<SimulatedStep> simulate_folded_in_time(const Scenario& scenario, const World& world,
                                                     const SimulationOptions& options, const StepRange& steps) {
  if (options.collectives != Collectives::fluid || !is_one_step_of_one_kind(scenario, steps)) return {};
  for (const ShorterSchedule& shorter : shorter_schedules(scenario))
    if (auto step = simulate_shorter(scenario, world, options, steps, shorter)) return step;
  return {};
}

std::vector<Seconds> makespans_folded_in_time(const Scenario& scenario, const World& world, const LoweredStep& known,
                                              std::span<const Speedup> speedups, std::size_t jobs) {
  std::vector<Seconds> makespans(speedups.size(), std::numeric_limits<Seconds>::quiet_NaN());
  const auto find_unknown = [&](const std::function<std::vector<Seconds>(std::span<const Speedup>)>& simulate) {
    std::vector<std::size_t> places;
    std::vector<Speedup> unknown;
    for (std::size_t i = 0; i < speedups.size(); ++i) {
      if (!std::isnan(makespans[i])) continue;
      places.push_back(i);
      unknown.push_back(speedups[i]);
    }
    if (unknown.empty()) return;
    const std::vector<Seconds> found = simulate(unknown);
    for (std::size_t i = 0; i < found.size(); ++i) makespans[places[i]] = found[i];
  };
  if (is_one_step_of_one_kind(scenario, {}))
    for (const ShorterSchedule& shorter : shorter_schedules(scenario))
      find_unknown([&](std::span<const Speedup> unknown) {
        std::optional<Dag> lowered;
        const bool is_known = known.dag != nullptr && leaves_out_as_much(shorter, known.repeat);
        if (!is_known) lowered = lower(scenario, world, {.micro_batches = shorter.micro_batches, .copies_ranks = true});
        return sim::makespans(is_known ? *known.dag : *lowered, periods_of(shorter), unknown, jobs);
      });
  find_unknown([&](std::span<const Speedup> unknown) {
    const bool is_known = known.dag != nullptr && known.repeat.times == 0;
    return is_known ? sim::makespans(*known.dag, unknown, jobs)
                    : sim::makespans(lower(scenario, world, {.copies_ranks = true}), unknown, jobs);
  });
  return makespans;
}

StepRange steps_in_short(const Scenario& scenario) {
  const auto shorter = scenarios::shorter_schedule(scenario, static_cast<std::int32_t>(4 * scenario.parallelism.pp));
  return {.micro_batches = shorter ? shorter->micro_batches : 0};
}

}  // namespace tandem::studies
