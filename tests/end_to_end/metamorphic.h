#pragma once

#include "scenarios/spec/scenario.h"

namespace tandem::studies {

/// The step time of the folded scenario, without what is drawn or played beside it.
Seconds step_time(const Scenario& scenario);

// The same scenario on another machine. All numbers but NCCL's own constants (sim/profiles/nccl.csv) are in the scenario.

/// Every kernel takes 1 / `times` as long: peaks, memory, what multiprocessors are fed, fixed costs.
Scenario with_faster_gpus(Scenario scenario, double times);
/// Every link carries `times` as much.
Scenario with_wider_links(Scenario scenario, double times);
/// Every hop takes `times` as long.
Scenario with_latencies(Scenario scenario, double times);
/// The CPU takes `times` as long to issue a kernel.
Scenario with_issue_times(Scenario scenario, double times);

/// Nothing of a rank runs beside anything else of it.
Scenario without_overlap(Scenario scenario);

}  // namespace tandem::studies
