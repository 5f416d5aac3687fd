#pragma once

#include "runtime/dag/dag.h"
#include "sim/collective_cost.h"
#include "sim/kernel_times.h"
#include "sim/unshared_links.h"

namespace tandem::sim {

/// What every task of a DAG costs by itself, all worked out at once, so that simulations of one DAG that differ by chance alone
/// (jitter.h) work out nothing again. The DAG must outlive it.
struct StepCosts {
  explicit StepCosts(const Dag& dag, const Speedup& speedup = {})
      : kernels(dag), collectives(dag, speedup), unshared(dag, collectives) {
    for (const TaskId first : dag.kernels.first) kernels.parts_of(first);
  }
  StepCosts(const StepCosts&) = delete;
  StepCosts& operator=(const StepCosts&) = delete;

  KernelTimes kernels;
  CollectiveCosts collectives;
  UnsharedLinks unshared;
};

}  // namespace tandem::sim
