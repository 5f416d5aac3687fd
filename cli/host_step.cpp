#include "cli/host_step.h"

#include <chrono>

#include "cli/command.h"
#include "runtime/executor.h"
#include "runtime/host/backend.h"
#include "scenarios/load.h"
#include "scenarios/lowering/lower.h"

namespace tandem {
namespace {

constexpr std::uint64_t data_seed = 1;

Dag lower_all_ranks(const Scenario& scenario, const std::string& file, const StepRange& steps, bool hops) {
  constexpr std::int64_t most_ranks = 64;
  constexpr std::int32_t most_steps = 64;
  constexpr double most_bytes = 16e9;
  const std::int64_t ranks = scenario.parallelism.world();
  if (ranks > most_ranks) {
    throw InputError({file, 0, 0}, std::to_string(ranks) + " ranks are too many for the host backend; expected at most " +
                                       std::to_string(most_ranks));
  }
  if (steps.count > most_steps) {
    throw InputError({file, 0, 0},
                     "sync_every " + std::to_string(steps.count) +
                         " makes too many steps for the host backend, which runs a whole period; expected at most " +
                         std::to_string(most_steps));
  }
  Dag dag = lower(scenario, make_world(scenario, false, {}, hops ? Detail::hops : Detail::sums), steps);
  double bytes = 0;
  for (BufferId id = 0; id < dag.buffers.size(); ++id) {
    if (dag.buffers[id].base == id) bytes += 4.0 * static_cast<double>(dag.buffers[id].shape.elements());
  }
  if (bytes > most_bytes) {
    throw InputError({file, 0, 0}, "the step's buffers take " + std::to_string(static_cast<std::int64_t>(bytes / 1e9)) +
                                       " GB in fp32; expected a smaller model for the host backend, at most " +
                                       std::to_string(static_cast<std::int64_t>(most_bytes / 1e9)) + " GB");
  }
  return dag;
}

}  // namespace

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
