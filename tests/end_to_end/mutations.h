#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "runtime/dag/dag.h"
#include "runtime/host/memory.h"
#include "scenarios/spec/scenario.h"

namespace tandem::studies {

inline constexpr std::uint64_t data_seed = 1;
inline constexpr double allowed = 1e-4;  ///< difference from the unsharded step: what is broken must exceed it

/// All ranks of the scenario's step.
Dag lowered(const Scenario& scenario);

/// The scenario's unsharded step, executed: what its sharded steps, whole and broken, are held against.
class UnshardedStep {
 public:
  explicit UnshardedStep(const Scenario& scenario);

  /// What is left of the equality after `dag` ran in the order of `seed`; infinite where it could not be run.
  double difference(const Dag& dag, unsigned seed = 0, std::set<GroupId> dropped = {}) const;

 private:
  Dag dag_;
  HostMemory memory_;
};

/// The DAG without the dependencies from tasks named `from` to tasks named `to` on other streams; expects that there are any.
Dag without_edges(Dag dag, std::string_view from, std::string_view to);

/// Every rank's block of the tensor moves on by its own size: the whole tensor is still there, on the wrong ranks.
Dag with_shifted_shards(Dag dag, const std::string& tensor);

/// The last members of two collectives take each other's places.
Dag with_swapped_members(Dag dag, GroupId a, GroupId b);

}  // namespace tandem::studies
