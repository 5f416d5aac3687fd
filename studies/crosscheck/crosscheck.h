#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/progress.h"
#include "runtime/execution/execution_site.h"
#include "scenarios/spec/scenario.h"
#include "sim/simulate.h"
#include "studies/crosscheck/comparison.h"
#include "studies/step/step_result.h"

namespace tandem::studies {

struct CrosscheckOptions {
  ExecutionChoice backend;  ///< where the step is executed, unless it was measured before
  std::string measured;     ///< a timeline of this scenario that `tandem-run --out` wrote; empty: the step is executed
  Collectives collectives = Collectives::fluid;
  Progress* progress = nullptr;  ///< is told how far the work is
};

/// The same DAG simulated and executed, all ranks of it.
class Crosscheck {
 public:
  /// Lowers the scenario, simulates and executes it. Throws InputError, placed at `file`, where the scenario is too large to
  /// execute, and where the measured timeline is not the scenario's.
  Crosscheck(const Scenario& scenario, const std::string& file, const CrosscheckOptions& options);
  ~Crosscheck();

  const Dag& dag() const;
  const Timeline& simulated() const { return simulated_; }
  const Timeline& measured() const;
  /// Returns the result of the executed step.
  const StepResult& result() const { return result_; }
  const Comparison& comparison() const { return comparison_; }
  std::string executed_on() const;
  /// Returns the loss of the step; nothing where it was not executed here.
  std::optional<double> loss() const;
  /// Returns how many kinds of collectives were exact on crafted data; nothing where the step was not executed here.
  std::optional<std::size_t> verified_collectives() const;

 private:
  class MeasuredSide;
  class StepOfThisMachine;
  class StepOfAFile;

  std::unique_ptr<MeasuredSide> step_;
  Timeline simulated_;
  StepResult result_;
  Comparison comparison_;
};

}  // namespace tandem::studies
