#pragma once

#include <cstdint>
#include <string>

#include "cli/result.h"
#include "runtime/dag.h"
#include "runtime/host/memory.h"
#include "runtime/timeline.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/scenario.h"

namespace tandem {

/// To execute on this machine's CPU. Throws InputError, placed at `file`, when the scenario is too large for threads and memory
/// here. `hops`: the DAG can also be simulated chunk by chunk.
Dag lower_all_ranks(const Scenario& scenario, const std::string& file, const StepRange& steps, bool hops = false);

/// Steps of a scenario on this machine's CPU: all its ranks, real numbers.
class HostStep {
 public:
  /// Throws InputError like `lower_all_ranks`.
  HostStep(const Scenario& scenario, const std::string& file) : HostStep(scenario, file, period_of(scenario)) {}
  HostStep(const Scenario& scenario, const std::string& file, const StepRange& steps, bool hops = false);
  HostStep(const HostStep&) = delete;

  std::size_t verify_collectives() const;
  void execute();

  const Dag& dag() const { return dag_; }
  const Timeline& timeline() const { return timeline_; }
  const HostMemory& memory() const { return memory_; }
  StepResult result() const;

 private:
  DType precision_;
  Dag dag_;
  HostMemory memory_;
  Timeline timeline_;
  Seconds wall_ = 0;
};

}  // namespace tandem
