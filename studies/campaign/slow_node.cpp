#include "studies/campaign/slow_node.h"

#include <algorithm>

#include "scenarios/mesh/mesh.h"
#include "scenarios/mesh/rank_placement.h"

namespace tandem::studies {

Scenario with_slow_node(const Scenario& scenario, const StepResult& step, double factor) {
  const auto busiest =
      std::ranges::max_element(step.stage_times, {}, [](const StageTime& stage) { return stage.parts.compute(); });
  Coordinates place;
  place[MeshAxis::pp] = static_cast<std::int32_t>(busiest - step.stage_times.begin());
  const Mesh mesh(scenario.parallelism);
  const RankPlaces places(scenario);
  const std::int64_t node = places.node(mesh.rank(place));
  Scenario slow = scenario;
  for (std::uint32_t rank = 0; rank < mesh.size(); ++rank) {
    if (places.node(rank) != node) continue;
    const auto known = std::ranges::find(slow.slow_gpus, std::int64_t{rank}, &SlowGpu::rank);
    if (known == slow.slow_gpus.end())
      slow.slow_gpus.push_back({.rank = rank, .factor = factor});
    else
      known->factor = std::min(known->factor, factor);
  }
  return slow;
}

std::optional<Seconds> step_with_slow_node(const Campaign& campaign, const StepResult& healthy,
                                           const SimulationOptions& options) {
  const SlowNodeSpec& slow = campaign.spec.slow_node;
  if (slow.one_in <= 0) return std::nullopt;
  const Scenario with_one = with_slow_node(campaign.scenario, healthy, slow.factor);
  return simulate_step(with_one, true, options).result.step_time;
}

}  // namespace tandem::studies
