#include "cli/host_step.h"

#include <chrono>

#include "cli/command.h"
#include "runtime/executor.h"
#include "runtime/host/backend.h"
#include "runtime/contents/initial_values.h"
#include "runtime/host/limits.h"
#include "scenarios/load.h"
#include "scenarios/lowering/lower.h"

namespace tandem {

Dag lower_all_ranks(const Scenario& scenario, const std::string& file, const StepRange& steps, bool hops) {
  constexpr std::int32_t most_steps = 64;
  refuse_too_many_ranks(scenario.parallelism.world(), file);
  if (steps.count > most_steps) {
    throw InputError({file, 0, 0},
                     "sync_every " + std::to_string(steps.count) +
                         " makes too many steps for the host backend, which runs a whole period; expected at most " +
                         std::to_string(most_steps));
  }
  Dag dag = lower(scenario, make_world(scenario, false, {}, hops ? Detail::hops : Detail::sums), steps);
  refuse_too_many_bytes(dag, file);
  return dag;
}

HostStep::HostStep(const Scenario& scenario, const std::string& file, const StepRange& steps, bool hops)
    : precision_(scenario.training.precision), dag_(lower_all_ranks(scenario, file, steps, hops)), memory_(dag_, data_seed) {}

std::size_t HostStep::verify_collectives() const { return tandem::verify_collectives(dag_); }

void HostStep::execute() {
  const auto began = std::chrono::steady_clock::now();
  const std::unique_ptr<Backend> backend = make_host_backend(memory_);
  timeline_ = tandem::execute(dag_, *backend);
  wall_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

StepResult HostStep::result() const {
  return summarize(dag_, timeline_, precision_, {.backend = "host", .folded = false, .wall = wall_, .peak_rss = peak_rss()});
}

}  // namespace tandem
