#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "studies/runner/signals.h"
#include "studies/runner/step_job.h"

namespace tandem::studies {

/// A step that has ended in a pool.
struct EndedStep {
  std::size_t index = 0;  ///< as `start` was told
  StepOutcome outcome;
  std::string json;  ///< the bytes of the result; empty for a failure
};

/// Where steps are simulated, many at once: in children of this process (child_pool.h) or elsewhere (studies/slurm/).
class StepPool {
 public:
  StepPool() = default;
  virtual ~StepPool() = default;
  StepPool(const StepPool&) = delete;
  StepPool& operator=(const StepPool&) = delete;

  /// Says that about so many steps will be started, before the first of them is.
  virtual void expect(std::size_t /*steps*/) {}
  /// How many steps the pool may hold that have not ended.
  virtual std::size_t capacity() const = 0;
  /// How many of those that it holds are being simulated right now.
  virtual std::size_t running() const = 0;

  /// Takes a step to be simulated. The job holds a scenario; `index` is for the caller to know it by.
  virtual void start(std::size_t index, const StepJob& job, const ChildSignals& signals) = 0;
  /// Waits until a step has ended, though not longer than about a second, and returns those that have; each is returned once.
  /// Throws Interrupted where a signal came, and std::runtime_error where no step can be simulated any more.
  virtual std::vector<EndedStep> wait(const ChildSignals& signals) = 0;
};

/// Who simulates a study's steps: children of this process, so many at once, for which a number stands, or a pool, which must
/// outlive the study.
struct StepWorkers {
  StepWorkers(std::size_t children, StepPool* elsewhere = nullptr) : here(children), pool(elsewhere) {}

  std::size_t here;  ///< how many processes may work on this machine
  StepPool* pool;    ///< takes the steps; null for children of this process
};

}  // namespace tandem::studies
