#pragma once

#include <string>

#include "runtime/base/progress.h"
#include "runtime/dag/dag.h"
#include "runtime/execution/execution_site.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/spec/scenario.h"
#include "studies/step/step_result.h"

namespace tandem::studies {

/// Lowers all ranks, to be executed. With `hops` the DAG can also be simulated chunk by chunk. Throws InputError, placed at
/// `file`, where the scenario is too large for the backend.
Dag lower_all_ranks(const Scenario& scenario, const std::string& file, const ExecutionChoice& backend, const StepRange& steps,
                    bool hops = false);

/// Lowers all ranks, to be executed elsewhere. Throws InputError, placed at `file`, for more than a machine has room for.
Dag lower_to_carry(const Scenario& scenario, const std::string& file, bool hops = false);

/// Steps of a scenario, executed with real numbers: all ranks in this process.
class ExecutedStep {
 public:
  /// Throws like `lower_all_ranks` and `make_site`.
  ExecutedStep(const Scenario& scenario, const std::string& file, const ExecutionChoice& backend = {})
      : ExecutedStep(scenario, file, backend, period_of(scenario)) {}
  ExecutedStep(const Scenario& scenario, const std::string& file, const ExecutionChoice& backend, const StepRange& steps,
               bool hops = false);
  ExecutedStep(const ExecutedStep&) = delete;

  std::size_t verify_collectives() const { return site_->verify_collectives(); }
  /// `progress`, where there is one, is told how far the execution is, under the name `what`.
  void execute(Progress* progress = nullptr, const std::string& what = "executing");

  const Dag& dag() const { return dag_; }
  const Timeline& timeline() const { return timeline_; }
  ExecutionSite& site() const { return *site_; }
  const HostMemory& memory() const { return site_->memory(); }
  DType precision() const { return precision_; }
  const ExecutionChoice& choice() const { return backend_; }
  StepResult result() const;

 private:
  DType precision_;
  ExecutionChoice backend_;
  Dag dag_;
  std::unique_ptr<ExecutionSite> site_;
  Timeline timeline_;
  Seconds wall_ = 0;
};

}  // namespace tandem::studies
