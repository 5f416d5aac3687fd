#pragma once

#include <vector>

#include "runtime/dag/dag.h"
#include "sim/collective_cost.h"

namespace tandem::sim {

/// Tells which links of a DAG never carry two flows at once: those whose collectives all have one stream of one rank in common,
/// which runs them one after the other. A flow over such links alone has all of them to itself, whatever else is in the air, and
/// takes its `uncontended_time`.
class UnsharedLinks {
 public:
  UnsharedLinks(const Dag& dag, CollectiveCosts& costs);

  bool hold(const Paths& paths) const;

 private:
  std::vector<bool> shared_;  ///< by link
};

}  // namespace tandem::sim
