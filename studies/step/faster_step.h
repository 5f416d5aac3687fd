#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "scenarios/spec/scenario.h"
#include "sim/speedup.h"
#include "studies/step/simulated_step.h"

namespace tandem::studies {

/// Returns how long a step takes with each of `speedups`, simulated in the way in which the step itself was, some `jobs` at a
/// time: each takes the memory of one.
///
/// Faster links may make others hold flows back that did not before (runtime/dag/nonbinding_links.h). So steps with these are
/// lowered on the fold that looks at every link, where that tells more ranks apart, in a process of their own beside the others.
std::vector<Seconds> faster_step_times(const Scenario& scenario, const FreshStep& step, std::span<const Speedup> speedups,
                                       std::size_t jobs);

}  // namespace tandem::studies
