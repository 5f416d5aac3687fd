#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/mesh/world.h"
#include "scenarios/spec/scenario.h"

namespace tandem::studies {

/// What the communicators of a step carry from node to node: the same wherever the nodes are, as long as the ranks of a node stay
/// together.
struct StepTraffic {
  struct OfCommunicator {
    Slot slot = Slot::tp;
    std::vector<std::uint32_t> members;  ///< world ranks, in its order
    std::vector<double> bytes;           ///< by path of its layout: on the wire, all channels together
  };
  std::vector<OfCommunicator> communicators;  ///< those over several nodes that carry something
};

/// Counts the traffic of the folded step, lowered once, packed on a cluster of its own. The layouts of the ranks where `scenario`
/// has them decide which algorithm NCCL takes. Under local SGD the step is the one that averages weights. Throws TopologyError.
StepTraffic traffic_of_step(const Scenario& scenario);

}  // namespace tandem::studies
