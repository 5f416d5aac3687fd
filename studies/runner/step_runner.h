#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "studies/runner/results_database.h"
#include "studies/runner/run_progress.h"
#include "studies/runner/step_job.h"
#include "studies/runner/step_pool.h"

namespace tandem::studies {

/// Returns what `--jobs` asks for: 0, the default, stands for as many as this machine has hardware threads.
std::size_t processes_at_once(int jobs);

/// Simulates scenarios, several at once, in children of this process (child_pool.h) or in a pool that is elsewhere.
///
/// With a cache, what it holds is not simulated again, and every outcome is on the disk as soon as it is known, so that the same
/// call after a kill goes on from there. A job whose scenario was refused is stored as such.
///
/// The process may have no other thread while a runner runs: a child has a copy of the locks that the other threads hold. While
/// a runner runs, SIGINT, SIGTERM and SIGHUP (unless ignored) make it throw Interrupted instead of ending the process.
class StepRunner {
 public:
  /// The cache, where there is one, must outlive the runner.
  explicit StepRunner(StepWorkers workers, ResultsDatabase* cache = nullptr) : workers_(workers), cache_(cache) {}

  /// Makes the job of that index when its turn comes, so that not all scenarios are in memory at once.
  using MakeJob = std::function<StepJob(std::size_t index)>;
  /// Is told each outcome as soon as it is known and stored, in whatever order they come.
  using OnOutcome = std::function<void(std::size_t index, StepOutcome outcome)>;

  /// Runs the jobs 0 to `count` - 1. Throws Interrupted, what `job` and `ended` throw, std::runtime_error where the cache or the
  /// pool fails, and InputError where the cache holds what is no result; all outcomes that `ended` was told stay stored.
  void run(std::size_t count, const MakeJob& job, const OnOutcome& ended, const OnRunProgress& told = {}) const;

  /// Returns the outcomes in the order of the jobs.
  std::vector<StepOutcome> run(std::vector<StepJob> jobs, const OnRunProgress& told = {}) const;

 private:
  StepWorkers workers_;
  ResultsDatabase* cache_;
};

}  // namespace tandem::studies
