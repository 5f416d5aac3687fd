#pragma once

#include <vector>

#include "scenarios/mesh/mesh.h"
#include "scenarios/mesh/symmetry.h"
#include "scenarios/mesh/world.h"
#include "scenarios/spec/scenario.h"
#include "topology/cluster.h"
#include "topology/folding.h"
#include "topology/layouts.h"

namespace tandem::scenarios {

/// One communicator for each orbit of communicators that the step uses; the fold's input has it under the same number.
struct CommunicatorInstance {
  Slot slot = Slot::tp;
  std::uint32_t size = 0;
  std::uint32_t orbit = 1;             ///< how many it stands for
  std::vector<std::uint32_t> members;  ///< world ranks, ascending; {source, destination} for a pair
  Layout layout;
  std::vector<BytesPerSecond> cable_shares = {};  ///< by path, where cables are merged (see cable_shares.h)
};

struct CommunicatorSurvey {
  std::vector<CommunicatorInstance> instances;
  std::vector<LinkId> links;  ///< the physical link of each of the fold's links
  FoldInput fold;             ///< ranks are the symmetry's orbits; the colours of ranks and links are left to the caller
};

/// Lays out the communicator of this slot whose members, in its order, are on these GPUs.
Layout lay_communicator(const Scenario& scenario, const Cluster& cluster, Slot slot, const std::vector<std::uint32_t>& gpus,
                        Detail detail = Detail::sums);

/// Looks at what `options` say of detail, trees and mirrors.
CommunicatorSurvey survey_communicators(const Scenario& scenario, const Mesh& mesh, const Cluster& cluster,
                                        const Symmetry& symmetry, const WorldOptions& options = {});

}  // namespace tandem::scenarios
