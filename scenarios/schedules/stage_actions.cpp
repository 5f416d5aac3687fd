#include "scenarios/schedules/stage_actions.h"

#include "scenarios/schedules/chunk_placement.h"
#include "scenarios/schedules/schedule_table.h"

namespace tandem::scenarios {

bool pairs_passes(const Scenario& scenario) {
  const ScheduleTraits& traits = traits_of(scenario.training.schedule);
  return traits.pairs_passes || (scenario.overlaps_ep() && traits.can_pair(scenario.parallelism.pp));
}

std::vector<Action> stage_actions(const Scenario& scenario, std::int32_t stage, std::int32_t micro_batches) {
  return schedule(scenario.training.schedule, {.stage = stage,
                                               .stages = static_cast<std::int32_t>(scenario.parallelism.pp),
                                               .micro_batches = micro_batches,
                                               .chunks = ChunkPlacement(scenario).chunks(),
                                               .pairs = pairs_passes(scenario)});
}

}  // namespace tandem::scenarios
