#pragma once

#include <memory>

#include "runtime/base/parallel.h"
#include "runtime/dag/dag.h"
#include "sim/chains.h"
#include "sim/host_issue.h"
#include "sim/host_order.h"

namespace tandem::sim {

/// What orders the tasks of a DAG whatever they cost, worked out once for simulations that differ in their speed (speedup.h) or
/// by chance (jitter.h). The DAG must outlive it.
struct StepOrder {
  explicit StepOrder(const Dag& dag) {
    const auto order_host = [&] {
      if (!issues_for_free(dag)) host = std::make_shared<const HostOrder>(dag);
    };
    in_parallel(2, [&](std::size_t part) { part == 0 ? order_host() : static_cast<void>(chains = Chains(dag)); });
  }

  Chains chains;
  std::shared_ptr<const HostOrder> host;  ///< where the CPU takes time to issue
};

}  // namespace tandem::sim
