#include "sim/simulate.h"

#include <atomic>
#include <functional>
#include <limits>
#include <memory>
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

SimulationRun simulate_here(const Dag& dag, Collectives collectives, EndedTasks* ended, const std::function<void()>& beside) {
  const Stopwatch stopwatch;
  SimulationRun run;
  std::atomic_flag is_prepared;
  const auto let_begin = [&] {
    is_prepared.test_and_set();
    is_prepared.notify_all();
  };
  const auto simulate = [&] {
    try {
      SimGridBackend backend(collectives, {}, {}, nullptr, {}, let_begin);
      run.timeline = execute(dag, backend, ended);
      run.wall = stopwatch.elapsed();
    } catch (...) {
      let_begin();
      throw;
    }
  };
  if (beside)
    do_beside(simulate, [&] {
      is_prepared.wait(false);
      beside();
    });
  else
    simulate();
  run.peak_rss = peak_rss();
  return run;
}

namespace {

/// Speedups that one process simulates, one after the other: neither the process nor its memory need be made anew for each. Last
/// digits depend on those before, so they are the same ones whatever is done at a time.
std::vector<std::vector<std::size_t>> shares_of(std::span<const Speedup> speedups) {
  constexpr std::size_t of_process = 3;
  std::vector<std::vector<std::size_t>> shares, alone;
  for (std::size_t i = 0; i < speedups.size(); ++i) {
    if (speedups[i].widens_links()) {  // on a network of its own, of which a process has one
      alone.push_back({i});
      continue;
    }
    if (shares.empty() || shares.back().size() == of_process) shares.emplace_back();
    shares.back().push_back(i);
  }
  shares.insert(shares.end(), alone.begin(), alone.end());
  return shares;
}

/// What `measure` returns of each speedup's simulation, which it runs on the backend that it is given.
std::vector<Seconds> measured_in_children(const Dag& dag, Collectives collectives, std::span<const Speedup> speedups,
                                          std::size_t jobs, const std::function<Seconds(SimGridBackend&)>& measure) {
  open_simgrid();
  const StepOrder order(dag);
  const std::vector<std::vector<std::size_t>> shares = shares_of(speedups);
  SharedDoubles results(speedups.size());
  const std::span<double> values = results.values();
  run_in_children(shares.size(), jobs, [&](std::size_t share) {
    std::unique_ptr<FluidNetwork> network;
    for (const std::size_t i : shares[share]) {
      SimGridBackend backend(collectives, speedups[i], {}, nullptr, {.order = &order, .network = &network});
      values[i] = measure(backend);
    }
  });
  return {values.begin(), values.end()};
}

}  // namespace

std::vector<Seconds> makespans(const Dag& dag, std::span<const Speedup> speedups, std::size_t jobs, Collectives collectives) {
  return measured_in_children(dag, collectives, speedups, jobs,
                              [&](SimGridBackend& backend) { return last_end_on(dag, backend); });
}

std::vector<Seconds> makespans(const Dag& dag, const Periods& periods, std::span<const Speedup> speedups, std::size_t jobs) {
  return measured_in_children(dag, Collectives::fluid, speedups, jobs, [&](SimGridBackend& backend) {
    Timeline timeline = execute(dag, backend);
    const std::optional<Repeat> repeat = find_repeat(dag, timeline, periods);
    if (!repeat) return std::numeric_limits<Seconds>::quiet_NaN();
    timeline.repeat = *repeat;
    return timeline.makespan();
  });
}

}  // namespace tandem::sim
