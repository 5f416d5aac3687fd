#include "runtime/execution/measured_runs.h"

#include <string>

#include "runtime/contents/initial_values.h"
#include "runtime/launch/control_plane.h"

namespace tandem {
namespace {

class Runs {
 public:
  Runs(const Dag& dag, GpuStep& step, const RunsWith& with) : dag_(dag), step_(step), with_(with) {}

  /// All processes begin together.
  Timeline run() {
    if (with_.control != nullptr) with_.control->barrier();
    return execute(dag_, step_, with_.ended);
  }
  Timeline run_from_the_start() {
    step_.fill(data_seed);
    return run();
  }

  /// Rank 0's, whose runs take as long as all others'.
  std::size_t of_mean() {
    const std::size_t own = step_.runs_of_mean();
    return with_.control == nullptr ? own : std::stoul(with_.control->broadcast(std::to_string(own)));
  }

 private:
  const Dag& dag_;
  GpuStep& step_;
  const RunsWith& with_;
};

void add(const std::vector<Seconds>& from, std::vector<Seconds>& to) {
  to.resize(from.size(), 0);
  for (std::size_t i = 0; i < from.size(); ++i) to[i] += from[i];
}

void divide(std::vector<Seconds>& sums, std::size_t by) {
  for (Seconds& sum : sums) sum /= static_cast<double>(by);
}

}  // namespace

MeasuredRuns measure_runs(const Dag& dag, GpuStep& step, const RunsWith& with) {
  Runs runs(dag, step, with);
  MeasuredRuns measured;
  step.date_tasks(false);
  runs.run_from_the_start();  // loads what is loaded at its first use
  runs.run_from_the_start();
  const std::size_t of_mean = runs.of_mean();
  measured.undated = step.duration();
  for (std::size_t run = 1; run < of_mean; ++run) {
    runs.run();
    measured.undated += step.duration();
  }
  measured.undated /= static_cast<double>(of_mean);

  step.date_tasks(true);
  measured.timeline = runs.run_from_the_start();
  if (of_mean == 1) return measured;
  for (std::size_t run = 1; run < of_mean; ++run) {
    const Timeline one = runs.run();
    add(one.start, measured.timeline.start);
    add(one.end, measured.timeline.end);
  }
  divide(measured.timeline.start, of_mean);
  divide(measured.timeline.end, of_mean);
  runs.run_from_the_start();
  return measured;
}

}  // namespace tandem
