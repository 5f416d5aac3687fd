#pragma once

#include <utility>
#include <vector>

#include "sim/collective_cost.h"
#include "tests/runtime/small_dag.h"

namespace tandem::sim {

struct LimitedFlow {
  TaskId task;
  CollectiveCost cost;
};

/// Adds a flow on Hopper that does not exceed `rate`: an NVLS all-reduce, which reaches 0.85 of what its path is said to.
inline LimitedFlow limited_flow(SmallDag& dag, Bytes bytes, std::vector<Crossing> crossings, BytesPerSecond rate) {
  const Paths path{.algorithm = Algorithm::nvls, .crossings = std::move(crossings), .bandwidth = rate / 0.85};
  const Layout layout{.intra_latency = 3.4e-6, .paths = {path}};
  return {dag.all_reduce(dag.rank(), dag.communicator(2, layout), bytes),
          collective_cost(OpKind::all_reduce, bytes, 2, layout, Architecture::hopper)};
}

}  // namespace tandem::sim
