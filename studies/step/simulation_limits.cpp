#include "studies/step/simulation_limits.h"

#include <algorithm>
#include <string>

#include "runtime/base/input_error.h"
#include "runtime/base/memory_limit.h"
#include "runtime/base/nearest.h"
#include "runtime/base/quantities.h"
#include "runtime/base/stopwatch.h"
#include "scenarios/lowering/step_size.h"
#include "studies/step/simulated_step.h"

namespace tandem::studies {
namespace {

// Of sixteen shipped scenarios of more than 100,000 tasks: 100 to 330 bytes of peak memory for each task beyond what the program
// takes for itself, the less the more tasks there are. deepseek-v3-2k took 2.0 times as long as one thread lowers it on two
// processors, and 2.8 on one (docs/limits.md).
constexpr double bytes_per_task = 330, bytes_of_program = 45e6;
constexpr double times_of_lowering = 2.3;

// Ids are 32 bits wide, those of buffers among operands 30 (runtime/dag/dag.h).
constexpr std::int64_t most_tasks = 0xFFFFFFFF, most_buffers = 0x3FFFFFFF;

double memory_for(double tasks) { return bytes_of_program + bytes_per_task * tasks; }

bool has_ids(double tasks, double buffers) {
  return tasks <= static_cast<double>(most_tasks) && buffers <= static_cast<double>(most_buffers);
}

/// "1,234,567"; of what nobody counts that far, "more than 1,000,000,000,000,000".
std::string about(double count) {
  constexpr double many = 1e15;
  return (count > many ? "more than " : "about ") + grouped(static_cast<std::int64_t>(std::min(count, many)));
}

std::string about_gigabytes(double bytes) {
  constexpr double many = 1e18;
  return (bytes > many ? "more than " : "about ") + gigabytes(static_cast<Bytes>(std::min(bytes, many))) + " GB";
}

std::string about_time(Seconds time) { return time < 1 ? "less than a second" : "about " + rounded(time); }

}  // namespace

StepCost cost_of_step(const Scenario& scenario, const World& world, const StepRange& steps) {
  const Stopwatch stopwatch;
  const scenarios::SizeEstimate size = size_of_step(scenario, world, steps);
  return {.tasks = size.step.tasks,
          .buffers = size.step.buffers,
          .memory = memory_for(size.step.tasks),
          .time = times_of_lowering * stopwatch.elapsed() * size.step.tasks / size.lowered.tasks};
}

void refuse_too_large_step(const Scenario& scenario, const World& world, const StepRange& steps) {
  const auto limit = memory_limit();
  const scenarios::StepSize most = most_of_step(scenario, world, steps);
  if (has_ids(most.tasks, most.buffers) && memory_for(most.tasks) <= static_cast<double>(limit)) return;
  const StepCost cost = cost_of_step(scenario, world, steps);
  const bool fits_ids = has_ids(cost.tasks, cost.buffers);
  if (fits_ids && cost.memory <= static_cast<double>(limit)) return;
  const std::string what = "would be a graph of " + about(cost.tasks) + " tasks (" +
                           grouped(static_cast<std::int64_t>(world.ranks.size())) + " ranks or classes of ranks, " +
                           grouped(scenario.training.micro_batches(scenario.parallelism)) + " micro-batches), which takes " +
                           about_gigabytes(cost.memory) + " of memory and, as fast as this machine lowered a part of it, " +
                           about_time(cost.time) + "; expected ";
  const std::string advice = "fewer micro-batches (training.global_batch), or fewer ranks that differ";
  if (!fits_ids) {
    throw InputError({scenario.name, 0, 0}, what + "at most " + grouped(most_tasks) + " tasks and " + grouped(most_buffers) +
                                                " buffers, of which it has " + about(cost.buffers) + ": " + advice);
  }
  throw InputError({scenario.name, 0, 0}, what + "at most " + gigabytes(limit) + " GB: " + advice +
                                              ", or a larger --max-memory (default: what is free here; simulations that run at "
                                              "once share it)");
}

Dag lower_within_limits(const Scenario& scenario, const World& world, const StepRange& steps) {
  refuse_too_large_step(scenario, world, steps);
  return lower(scenario, world, steps);
}

void refuse_beyond_limits(const Scenario& scenario, bool folded, Collectives collectives) {
  constexpr std::int64_t most_in_steps = 256;
  const std::int64_t ranks = scenario.parallelism.world_size();
  if (!folded && ranks > most_lowered_ranks) {
    throw InputError({"--no-fold", 0, 0}, "every one of " + std::to_string(ranks) + " ranks would be lowered; expected at most " +
                                              std::to_string(most_lowered_ranks));
  }
  if (collectives != Collectives::steps) return;
  if (ranks > most_in_steps) {
    throw InputError({"--collectives steps", 0, 0}, "every message between " + std::to_string(ranks) +
                                                        " ranks would be simulated; expected at most " +
                                                        std::to_string(most_in_steps) + " ranks, or --collectives fluid");
  }
  if (scenario.cluster.node_links == NodeLinks::mesh)
    throw InputError({"--collectives steps", 0, 0},
                     "rings in a mesh of a node spread over all of its links at once, which is not simulated message by message; "
                     "expected --collectives fluid, or cluster.node_links switched");
  if (!scenario.training.sync.empty())
    throw InputError({"--collectives steps", 0, 0},
                     "training.sync plays replicas by collectives as wholes; expected --collectives fluid");
  if (scenario.jitter.enabled())
    throw InputError({"--collectives steps", 0, 0}, "faults.jitter varies collectives as wholes; expected --collectives fluid");
}

}  // namespace tandem::studies
