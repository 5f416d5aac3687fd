#include "scenarios/lowering/step_size.h"

#include <algorithm>
#include <map>
#include <vector>

#include "scenarios/lowering/lower_rank.h"
#include "scenarios/schedules/schedule_table.h"

namespace tandem::scenarios {
namespace {

/// Copies of the model that a stage has chunks of, each with micro-batches of its own.
std::int64_t copies_of(const Scenario& scenario) { return ChunkPlacement(scenario).copies(); }

/// Every micro-batch after the other, forward through all chunks and back, whole or in the parts that the schedule splits it
/// into. What is lowered of a pass does not depend on its place in the schedule.
std::vector<Action> one_by_one(const Scenario& scenario, std::int64_t micro_batches) {
  const bool splits = traits_of(scenario.training.schedule).splits_backward;
  const ChunkPlacement placement(scenario);
  const auto per_copy = static_cast<std::int32_t>(micro_batches) / placement.copies();
  const std::int32_t chunks_of_copy = placement.chunks() / placement.copies();
  std::vector<Action> actions;
  for (std::int32_t i = 0; i < placement.copies() * per_copy; ++i) {
    const std::int32_t first = i / per_copy * chunks_of_copy;
    for (std::int32_t chunk = 0; chunk < chunks_of_copy; ++chunk)
      actions.push_back({.kind = Action::Kind::forward, .micro_batch = i, .chunk = first + chunk});
    for (std::int32_t chunk = chunks_of_copy - 1; chunk >= 0; --chunk) {
      const auto back = [&](Action::Kind kind) { actions.push_back({.kind = kind, .micro_batch = i, .chunk = first + chunk}); };
      if (!splits) back(Action::Kind::backward);
      if (splits) back(Action::Kind::backward_input);
      if (splits) back(Action::Kind::backward_weight);
    }
  }
  return actions;
}

/// One rank of the step with so many micro-batches.
StepSize lowered_size(const Scenario& scenario, const World& world, RankIndex rank, std::int64_t micro_batches) {
  Scenario shorter = scenario;
  TrainingSpec& training = shorter.training;
  training.global_batch = micro_batches * scenario.parallelism.data_replicas() * training.micro_batch;
  const std::vector<Action> actions = one_by_one(shorter, micro_batches);
  DagBuilder builder;
  add_ranks_and_communicators(world, builder);
  lower_rank(
      builder, shorter, world, rank, [&](StageProgram& program) { program.lower_step(actions); }, blocks_of_sharded(shorter));
  return {static_cast<double>(builder.dag().tasks.size()), static_cast<double>(builder.dag().buffers.size())};
}

std::map<std::int32_t, std::vector<RankIndex>> ranks_by_stage(const World& world) {
  std::map<std::int32_t, std::vector<RankIndex>> of_stage;
  for (RankIndex rank = 0; rank < world.ranks.size(); ++rank) of_stage[world.ranks[rank].pp].push_back(rank);
  return of_stage;
}

std::int64_t micro_batches_of(const Scenario& scenario, const StepRange& steps) {
  return steps.micro_batches > 0 ? steps.micro_batches : scenario.training.micro_batches(scenario.parallelism);
}

}  // namespace

SizeEstimate size_of_step(const Scenario& scenario, const World& world, const StepRange& steps) {
  const std::int64_t least = copies_of(scenario), all = micro_batches_of(scenario, steps);
  SizeEstimate estimate;
  for (const auto& [stage, ranks] : ranks_by_stage(world)) {
    const StepSize few = lowered_size(scenario, world, ranks.front(), least);
    StepSize more = few;
    if (all > least) more = lowered_size(scenario, world, ranks.front(), 2 * least);
    const double further = static_cast<double>(all - least) / static_cast<double>(least);
    const double times = static_cast<double>(ranks.size()) * static_cast<double>(steps.count);
    estimate.step.tasks += times * (few.tasks + further * (more.tasks - few.tasks));
    estimate.step.buffers += times * (few.buffers + further * (more.buffers - few.buffers));
    estimate.lowered.tasks += all > least ? few.tasks + more.tasks : few.tasks;
    estimate.lowered.buffers += all > least ? few.buffers + more.buffers : few.buffers;
  }
  return estimate;
}

StepSize most_of_step(const Scenario& scenario, const World& world, const StepRange& steps) {
  const std::int64_t least = copies_of(scenario);
  const double often = 2 * static_cast<double>(micro_batches_of(scenario, steps)) / static_cast<double>(least);
  StepSize most;
  for (const auto& [stage, ranks] : ranks_by_stage(world)) {
    const StepSize one = lowered_size(scenario, world, ranks.front(), least);
    const double times = often * static_cast<double>(ranks.size()) * static_cast<double>(steps.count);
    most.tasks += times * one.tasks;
    most.buffers += times * one.buffers;
  }
  return most;
}

}  // namespace tandem::scenarios
