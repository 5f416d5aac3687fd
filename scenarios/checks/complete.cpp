#include "scenarios/checks/complete.h"

#include <algorithm>

#include "scenarios/checks/rules.h"

namespace tandem::scenarios {

std::int64_t default_bucket_parameters(std::int64_t dp) { return std::max<std::int64_t>(40'000'000, 1'000'000 * dp); }

void complete(Scenario& scenario) {
  ParallelismSpec& p = scenario.parallelism;
  p.sp = p.sp && p.tp > 1;
  if (!std::ranges::all_of(world_rules(), [&](const Rule& rule) { return rule.holds(scenario); })) return;
  std::int64_t& gpus = scenario.cluster.gpus;
  if (gpus == 0) gpus = p.replica_size() * p.dp;
  if (p.dp == 0) p.dp = gpus / p.replica_size();
  std::int64_t& bucket = scenario.training.bucket_parameters;
  if (bucket == 0) bucket = default_bucket_parameters(p.dp);
}

}  // namespace tandem::scenarios
