#pragma once

#include <vector>

#include "scenarios/mesh.h"
#include "scenarios/scenario.h"
#include "scenarios/world.h"
#include "topology/cluster.h"
#include "topology/folding.h"

namespace tandem {

/// One communicator of the whole mesh, before folding; its crossings stand in the fold's input under the same number.
struct CommunicatorInstance {
  Slot slot = Slot::tp;
  std::uint32_t size = 0;
  std::uint32_t channels = 1;
  std::uint32_t nodes = 1;
  Seconds intra_latency = 0;
  Seconds inter_latency = 0;
};

/// Every communicator that the step uses, and who takes part in it and which physical links it crosses. The colours of ranks and
/// links are left to the caller.
struct CommunicatorSurvey {
  std::vector<CommunicatorInstance> instances;
  FoldInput fold;

  /// World ranks, ascending; {source, destination} for a pair.
  std::vector<std::uint32_t> members(std::uint32_t instance) const;
};

CommunicatorSurvey survey_communicators(const Scenario& scenario, const Mesh& mesh, const Cluster& cluster);

}  // namespace tandem
