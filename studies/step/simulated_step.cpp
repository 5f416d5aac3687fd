#include "studies/step/simulated_step.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/backend_names.h"
#include "runtime/base/input_error.h"
#include "runtime/base/parallel.h"
#include "runtime/base/peak_rss.h"
#include "scenarios/mesh/token_routing.h"
#include "sim/collective_cost.h"
#include "sim/simulate.h"
#include "studies/step/folded_time.h"
#include "studies/step/graph_facts.h"
#include "studies/step/jitter_times.h"
#include "studies/step/relieved_flows.h"
#include "studies/step/simulation_limits.h"
#include "studies/step/sync_policies.h"

namespace tandem::studies {
namespace {

SimulationRun simulate_showing_progress(const Dag& dag, const SimulationOptions& options, const std::function<void()>& beside) {
  if (!options.ends_process) return simulate(dag, options.collectives, {}, shown_in(options.progress, "simulating"), beside);
  EndedTasks ended = 0;
  const auto share = [&] { return static_cast<double>(ended) / static_cast<double>(dag.tasks.size()); };
  const auto watch = watched(options.progress, "simulating", share);
  return sim::simulate_here(dag, options.collectives, watch ? &ended : nullptr, beside);
}

SimulatedStep simulate_one(const Scenario& scenario, const World& world, bool folded, const SimulationOptions& options,
                           const StepRange& steps) {
  Progress* const progress = options.progress;
  refuse_too_large_step(scenario, world, steps);
  if (folded && options.fold_time)
    if (auto short_step =
            shown_while(progress, "simulating", [&] { return simulate_folded_in_time(scenario, world, options, steps); }))
      return *std::move(short_step);
  StepRange copying = steps;
  copying.copies_ranks = true;
  SimulatedStep step{
      .dag = shown_while(progress, "lowering", [&] { return lower(scenario, world, copying); }), .timeline = {}, .result = {}};
  spdlog::debug("lowered to {} tasks, {} collectives and transfers, {} buffers", step.dag.tasks.size(), step.dag.groups.size(),
                step.dag.buffers.size());
  std::optional<GraphFacts> graph;
  SimulationRun run = simulate_showing_progress(step.dag, options, [&] { graph.emplace(step.dag); });
  step.timeline = std::move(run.timeline);
  spdlog::debug("simulated {:.6f} s", step.timeline.makespan());
  if (options.simulated) options.simulated({world, step.dag, step.timeline, folded, options.collectives});
  const RunFacts facts{
      .backend = simgrid_backend, .collectives = name_of(options.collectives), .folded = folded, .peak_rss = run.peak_rss};
  step.result = shown_while(progress, "summing up", [&] {
    return summarize(step.dag, step.timeline, *graph, scenario.training.precision, facts,
                     options.memory_over_time ? &step.memory : nullptr);
  });
  return step;
}

}  // namespace

StepResult mean_of_period(const StepResult& local, const StepResult& sync, std::int64_t sync_every) {
  const double of_sync = 1 / static_cast<double>(sync_every), of_local = 1 - of_sync;
  const auto mean = [&](double StepResult::*of) { return of_local * local.*of + of_sync * sync.*of; };
  StepResult period = sync;
  period.sync_every = sync_every;
  period.step_kinds = {.local = local.step_time, .sync = sync.step_time};
  period.step_time = mean(&StepResult::step_time);
  period.lower_bound = mean(&StepResult::lower_bound);
  period.upper_bound = mean(&StepResult::upper_bound);
  const auto mean_parts = [&](const TimeParts& in_local, const TimeParts& in_sync) {
    TimeParts parts;
    parts.add(in_local, of_local);
    parts.add(in_sync, of_sync);
    return parts;
  };
  period.parts = mean_parts(local.parts, sync.parts);
  for (std::size_t stage = 0; stage < period.stage_times.size(); ++stage)
    period.stage_times[stage].parts = mean_parts(local.stage_times[stage].parts, sync.stage_times[stage].parts);
  period.kinds = weighted_sum(local.kinds, of_local, sync.kinds, of_sync);
  if (local.metrics && sync.metrics) period.metrics = weighted_sum(*local.metrics, of_local, *sync.metrics, of_sync);
  // Every step has the same tokens, so what counts work per time goes as the inverse of the time.
  const double pace = sync.step_time / period.step_time;
  period.tokens_per_second_per_gpu *= pace;
  period.model_flops_per_gpu *= pace;
  period.mfu *= pace;
  period.hfu = (of_local * local.hfu * local.step_time + of_sync * sync.hfu * sync.step_time) / period.step_time;
  for (std::size_t stage = 0; stage < period.stages.size(); ++stage) {
    if (local.stages[stage].peak() > sync.stages[stage].peak()) period.stages[stage] = local.stages[stage];
  }
  if (local.peak_memory() > sync.peak_memory()) period.device_memory = local.device_memory;
  period.tasks += local.tasks;
  period.run.tasks_simulated += local.run.tasks_simulated;
  period.run.peak_rss = std::max(local.run.peak_rss, sync.run.peak_rss);
  return period;
}

namespace {

/// Returns the options for steps of which nobody is told, and nothing asked for but the result.
SimulationOptions untold(SimulationOptions options) {
  options.simulated = nullptr;
  options.memory_over_time = false;
  return options;
}

SimulatedStep simulate_on(const Scenario& scenario, const World& world, bool folded, const SimulationOptions& options) {
  spdlog::debug("{} ranks in {} classes, {} communicators on {} classes of links", scenario.parallelism.world_size(),
                world.ranks.size(), world.communicators.size(), world.links.size());
  SimulationOptions of_first = options;
  of_first.ends_process &= !scenario.training.local_steps();
  SimulatedStep step = simulate_one(scenario, world, folded, of_first, {});
  if (scenario.training.local_steps()) {
    const StepResult local = simulate_one(scenario, world, folded, untold(options), {.averages = false}).result;
    step.result = mean_of_period(local, step.result, scenario.training.sync_every);
  }
  return step;
}

/// No flow does better than under ideal spreading, and none worse than with all that could be on its cables on them at once.
MergedFold merged_fold(const Scenario& scenario, const SimulationOptions& options) {
  const SimulationOptions of_bounds = untold(options);
  Scenario even = scenario;
  even.cluster.fabric.routing = FlowRouting::adaptive;
  constexpr double everything = 1e9;  // a bound may be coarse: of all that would be told apart the worst counts
  const World crowded = make_world(scenario, true, {.merge = {everything, CableMerge::Among::all}});
  return {.tolerance = options.fold_tolerance,
          .lower = simulate_on(even, make_world(even, true), true, of_bounds).result.step_time,
          .upper = simulate_on(scenario, crowded, true, of_bounds).result.step_time};
}

void refuse_too_many_classes(const Scenario& scenario, const World& world) {
  const auto classes = static_cast<std::int64_t>(world.ranks.size());
  if (classes <= most_lowered_ranks) return;
  const bool hashed = scenario.cluster.fabric.routing == FlowRouting::ecmp;
  throw InputError({scenario.name, 0, 0},
                   "no two of " + std::to_string(classes) + " classes of ranks behave alike, expected at most " +
                       std::to_string(most_lowered_ranks) +
                       (hashed ? "; a larger --fold-tolerance (such as 16) merges links whose loads differ by chance"
                               : "; a more regular placement or fewer faults leave fewer"));
}

/// The time of a step that drops nothing; nothing where experts have no capacity, or no more and no less than it takes.
std::optional<Seconds> safe_step_time(const Scenario& scenario, bool folded, const SimulationOptions& options,
                                      const ExpertBalance& balance) {
  const MoeSpec& moe = scenario.model.moe;
  if (balance.expert_choice || moe.capacity_factor == 0) return {};
  Scenario safe = scenario;
  safe.model.moe.capacity_factor = balance.safe_capacity_factor();
  if (slots_by_expert(safe.model.moe, balance.tokens, node_limit_of(safe)) == balance.slots) return {};
  return simulate_step(safe, folded, options).result.step_time;
}

struct Folds {
  World exact;
  /// The same with trees that tell no ranks apart (see make_world), where that leaves so much less that it is worth a try.
  std::optional<World> even;
};

/// Whether nobody looks at ranks one by one: who draws their speeds, merges cables, or compares an even fold with the exact one.
bool folds_mirrors_well(const Scenario& scenario, const SimulationOptions& options) {
  return !scenario.jitter.enabled() && options.fold_tolerance == 0 && trees_in_question(scenario).none();
}

/// Folds without the trees that nothing runs on. Which these are is known of a graph: what it chooses depends on sizes, and on
/// what makes two communicators unequal anyway, so a coarser fold chooses as the exact one does. Each round knows more trees that
/// are needed; without them the fold is the one that has all.
Folds fold_without_unused_trees(const Scenario& scenario, const SimulationOptions& options, Detail detail) {
  constexpr std::size_t few_classes = 32;  // are simulated soon, as they are
  const SlotSet in_question = trees_in_question(scenario);
  const bool merges = options.fold_tolerance > 0;
  SlotSet unused = in_question;
  if (merges) unused.reset();
  for (;;) {
    WorldOptions of_world{.merge = {.tolerance = options.fold_tolerance},
                          .detail = detail,
                          .without_trees = unused,
                          .folds_mirrors = options.fold_mirrors && folds_mirrors_well(scenario, options)};
    Folds folds{.exact = make_world(scenario, true, of_world), .even = {}};
    const SlotSet used = in_question & ~unused;
    if (used.any() && folds.exact.ranks.size() > few_classes && !merges && !scenario.training.local_steps()) {
      of_world.even_trees = used;
      folds.even = make_world(scenario, true, of_world);
      if (2 * folds.even->ranks.size() >= folds.exact.ranks.size()) folds.even.reset();
    }
    const World& world = folds.even ? *folds.even : folds.exact;
    const bool is_lowered = static_cast<std::int64_t>(world.ranks.size()) <= most_lowered_ranks;
    if (unused.none() || !is_lowered) return folds;
    const Dag dag = lower_within_limits(scenario, world, steps_in_short(scenario));
    CollectiveCosts costs(dag);
    const SlotSet on_trees = slots_of(world, dag, [&](TaskId id) {
      const Task& task = dag.tasks[id];
      return is_of_trees(dag.communicator_of(task).layout.paths[costs.of(task).paths].algorithm);
    });
    if ((on_trees & unused).none()) return folds;
    unused &= ~on_trees;
  }
}

Folds lay_out(const Scenario& scenario, bool folded, const SimulationOptions& options) {
  const Detail detail = options.collectives == Collectives::steps ? Detail::hops : Detail::sums;
  return shown_while(options.progress, folded ? "folding" : "laying out", [&] {
    if (folded) return fold_without_unused_trees(scenario, options, detail);
    return Folds{.exact = make_world(scenario, false, {.detail = detail}), .even = {}};
  });
}

/// Simulates the even fold, and keeps it where the exact one has the same step time. Sets the world that was simulated.
SimulatedStep simulate_folds(const Scenario& scenario, Folds folds, bool folded, const SimulationOptions& options,
                             World& simulated) {
  if (folds.even && static_cast<std::int64_t>(folds.even->ranks.size()) <= most_lowered_ranks) {
    SimulationOptions whole = options;
    whole.fold_time = false;  // what becomes of its tasks is followed one by one
    whole.ends_process = false;
    SimulatedStep step = simulate_on(scenario, *folds.even, true, whole);
    const bool same = relief_is_absorbed(folds.exact, *folds.even, step.dag, step.timeline);
    spdlog::debug("places in trees {}", same ? "leave the step time as it is" : "matter");
    if (same) {
      simulated = std::move(*folds.even);
      return step;
    }
  }
  simulated = std::move(folds.exact);
  if (folded) refuse_too_many_classes(scenario, simulated);
  return simulate_on(scenario, simulated, folded, options);
}

/// Whether `simulate_in_full` has more to simulate than the step.
bool simulates_after_step(const Scenario& scenario) {
  return scenario.jitter.enabled() || !scenario.training.sync.empty() || scenario.model.moe.capacity_factor != 0;
}

}  // namespace

SimulatedStep simulate_steps(const Scenario& scenario, bool folded, const SimulationOptions& options, const StepRange& steps) {
  World world = lay_out(scenario, folded, options).exact;
  if (folded) refuse_too_many_classes(scenario, world);
  SimulatedStep step = simulate_one(scenario, world, folded, options, steps);
  step.class_of = std::move(world.class_of);
  return step;
}

SimulatedStep simulate_step(const Scenario& scenario, bool folded, const SimulationOptions& options) {
  World world;
  SimulatedStep step = simulate_folds(scenario, lay_out(scenario, folded, options), folded, options, world);
  if (folded && options.fold_tolerance > 0 && scenario.cluster.fabric.routing == FlowRouting::ecmp)
    step.result.merged_fold = merged_fold(scenario, options);
  step.result.warnings = scenario.warnings;
  step.class_of = std::move(world.class_of);
  return step;
}

SimulatedStep simulate_in_full(const Scenario& scenario, bool folded, const SimulationOptions& options,
                               const Stopwatch& stopwatch) {
  SimulationOptions of_step = options, of_others = untold(options);
  of_step.ends_process &= !simulates_after_step(scenario) && options.fold_tolerance == 0;
  of_others.ends_process = false;  // how many of them there are is theirs to say
  SimulatedStep step = simulate_step(scenario, folded, of_step);
  StepResult& result = step.result;
  if (result.experts) result.experts->safe_step_time = safe_step_time(scenario, folded, of_others, *result.experts);
  result.jitter = draw_jitter(scenario, step, options.collectives, options.progress);
  result.sync = compare_sync_policies(scenario, result, folded, of_others);
  result.run.wall = stopwatch.elapsed();
  result.run.peak_rss = std::max(peak_rss(), result.run.peak_rss);
  return step;
}

}  // namespace tandem::studies
