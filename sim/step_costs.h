#pragma once

#include <vector>

#include "runtime/dag/dag.h"
#include "sim/binding_crossings.h"
#include "sim/collective_cost.h"
#include "sim/kernel_times.h"
#include "sim/speedup.h"

namespace tandem::sim {

/// What every task of a DAG costs by itself, all worked out at once, so that simulations of one DAG that differ by chance alone
/// (jitter.h) work out nothing again. The DAG must outlive it.
struct StepCosts {
  explicit StepCosts(const Dag& dag, const Speedup& speedup = {})
      : links(faster_links(dag.links, speedup)), kernels(dag), collectives(dag, speedup), binding(dag, links) {
    for (const TaskId first : dag.first_of_kernel) kernels.parts_of(first);
  }
  StepCosts(const StepCosts&) = delete;
  StepCosts& operator=(const StepCosts&) = delete;

  std::vector<Link> links;  ///< of the DAG, at this speed
  KernelTimes kernels;
  CollectiveCosts collectives;
  BindingCrossings binding;
};

}  // namespace tandem::sim
