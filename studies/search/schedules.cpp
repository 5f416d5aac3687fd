#include "studies/search/schedules.h"

#include "scenarios/schedules/chunk_placement.h"
#include "scenarios/schedules/schedule_table.h"
#include "scenarios/schedules/stage_actions.h"

namespace tandem::studies {

const std::vector<std::vector<Action>>& Schedules::of(const Scenario& scenario, std::int32_t micro_batches) {
  const ChunkPlacement placement(scenario);
  const Key key{scenario.training.schedule, scenario.parallelism.pp, placement.chunks(), micro_batches, pairs_passes(scenario)};
  const auto [known, is_new] = known_.try_emplace(key, std::vector<std::vector<Action>>{});
  if (is_new)
    for (std::int32_t stage = 0; stage < scenario.parallelism.pp; ++stage)
      known->second.push_back(stage_actions(scenario, stage, micro_batches));
  return known->second;
}

}  // namespace tandem::studies
