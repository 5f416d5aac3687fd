#include "sim/simulate.h"

#include <algorithm>
#include <chrono>

#include "runtime/executor.h"
#include "sim/child_process.h"
#include "sim/simgrid_backend.h"

namespace tandem {

SimulationRun simulate(const Dag& dag, Collectives collectives) {
  const auto began = std::chrono::steady_clock::now();
  SharedDoubles start(dag.tasks.size());
  SharedDoubles end(dag.tasks.size());

  SimulationRun run;
  run.peak_rss = run_in_child([&] {
    SimGridBackend backend(collectives);
    const Timeline timeline = execute(dag, backend);
    std::ranges::copy(timeline.start, start.values().begin());
    std::ranges::copy(timeline.end, end.values().begin());
  });
  run.timeline.start.assign(start.values().begin(), start.values().end());
  run.timeline.end.assign(end.values().begin(), end.values().end());
  run.wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return run;
}

}  // namespace tandem
