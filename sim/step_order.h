#pragma once

#include <memory>

#include "runtime/dag/dag.h"
#include "sim/chains.h"
#include "sim/host_issue.h"
#include "sim/host_order.h"

namespace tandem::sim {

/// What orders the tasks of a DAG whatever they cost, worked out once for simulations that differ in their speed (speedup.h) or
/// by chance (jitter.h). The DAG must outlive it.
struct StepOrder {
  explicit StepOrder(const Dag& dag)
      : chains(dag), host(issues_for_free(dag) ? nullptr : std::make_shared<const HostOrder>(dag)) {}

  Chains chains;
  std::shared_ptr<const HostOrder> host;  ///< where the CPU takes time to issue
};

}  // namespace tandem::sim
