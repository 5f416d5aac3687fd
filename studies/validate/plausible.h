#pragma once

#include <string>
#include <utility>
#include <vector>

#include "studies/validate/run_scenario.h"

namespace tandem::studies {

/// Values that were filled in for what a run does not say, by column.
using Assumptions = std::vector<std::pair<std::string, std::string>>;

/// A run with every blank that matters filled in, as a scenario.
struct PlausibleRun {
  Assumptions assumed;
  bool to_fit = false;  ///< recomputes more than anybody would whose run fits without it
  RunScenario run;
};

/// How many scenarios of a run are simulated at most, and as many again with more recomputation. Of a longer list, so many evenly
/// spaced ones are taken, the first and the last among them.
inline constexpr std::size_t most_plausible_runs = 12;

/// Returns the scenarios that a run may have been: a single one if the run's columns say everything. Blank columns take these
/// values, in all combinations that make a scenario:
/// - `zero`, `sp` (where tp > 1) and `recompute`: those of the framework (scenarios/reading/run_defaults.h). Those that recompute
///   more (`to_fit`) come after the others: every eighth, fourth, second layer, or each.
/// - `vpp` (where pp > 1): 1, and where the framework interleaves and the schedule is not another one, the divisors of a stage's
///   layers, at most four of them; not 1 under interleaved-1f1b, nor where overlap_pp is 1: Megatron-LM overlaps the exchange
///   between stages under that schedule only (--overlap-p2p-communication). Whether micro-batches are a multiple of pp, the
///   scenario checks.
/// - `micro_batch`: 1, 2, 4 and 8, of which those count that divide a replica's share of the batch.
/// Throws InputError where none makes a scenario, with the reason of the first.
std::vector<PlausibleRun> plausible_runs(const RunRow& row);

}  // namespace tandem::studies
