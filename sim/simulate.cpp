#include "sim/simulate.h"

#include <limits>
#include <optional>

#include "runtime/base/parallel.h"
#include "runtime/base/peak_rss.h"
#include "runtime/base/stopwatch.h"
#include "runtime/executor.h"
#include "sim/child_process.h"
#include "sim/fluid_network.h"
#include "sim/simgrid_backend.h"

namespace tandem::sim {

SimulationRun simulate(const Dag& dag, Collectives collectives, const Speedup& speedup,
                       const std::function<void(double share)>& progress, const std::function<void()>& beside) {
  const Stopwatch stopwatch;
  open_simgrid();
  SharedDoubles start(dag.tasks.size());
  SharedDoubles end(dag.tasks.size());
  SharedCounter ended;
  const auto tell = [&] { progress(static_cast<double>(ended.value()) / static_cast<double>(dag.tasks.size())); };

  SimulationRun run;
  const auto work = [&] {
    SimGridBackend backend(collectives, speedup);
    execute_into(start.values(), end.values(), dag, backend, &ended.value());
  };
  ChildProcess child(work);  // before this process has threads
  const auto wait = [&] { run.peak_rss = child.wait(progress ? std::function<void()>(tell) : std::function<void()>()); };
  if (beside)
    do_beside(wait, beside);
  else
    wait();
  if (progress) tell();
  run.timeline.start.assign(start.values().begin(), start.values().end());
  run.timeline.end.assign(end.values().begin(), end.values().end());
  run.wall = stopwatch.elapsed();
  return run;
}

SimulationRun simulate_here(const Dag& dag, Collectives collectives, EndedTasks* ended) {
  const Stopwatch stopwatch;
  SimGridBackend backend(collectives);
  SimulationRun run{.timeline = execute(dag, backend, ended)};
  run.wall = stopwatch.elapsed();
  run.peak_rss = peak_rss();
  return run;
}

namespace {

/// What `of` returns for each number below `count`, each in a child.
std::vector<double> in_children(std::size_t count, std::size_t jobs, const std::function<double(std::size_t)>& of) {
  open_simgrid();
  SharedDoubles results(count);
  const std::span<double> values = results.values();
  run_in_children(count, jobs, [&](std::size_t i) { values[i] = of(i); });
  return {values.begin(), values.end()};
}

}  // namespace

std::vector<Seconds> makespans(const Dag& dag, std::span<const Speedup> speedups, std::size_t jobs, Collectives collectives) {
  const StepOrder order(dag);
  return in_children(speedups.size(), jobs, [&](std::size_t i) {
    SimGridBackend backend(collectives, speedups[i], {}, nullptr, {.order = &order});
    return last_end_on(dag, backend);
  });
}

std::vector<Seconds> makespans(const Dag& dag, const Periods& periods, std::span<const Speedup> speedups, std::size_t jobs) {
  const StepOrder order(dag);
  return in_children(speedups.size(), jobs, [&](std::size_t i) {
    SimGridBackend backend(Collectives::fluid, speedups[i], {}, nullptr, {.order = &order});
    Timeline timeline = execute(dag, backend);
    const std::optional<Repeat> repeat = find_repeat(dag, timeline, periods);
    if (!repeat) return std::numeric_limits<Seconds>::quiet_NaN();
    timeline.repeat = *repeat;
    return timeline.makespan();
  });
}

}  // namespace tandem::sim
