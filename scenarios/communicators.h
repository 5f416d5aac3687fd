#pragma once

#include <vector>

#include "scenarios/mesh.h"
#include "scenarios/scenario.h"
#include "scenarios/symmetry.h"
#include "scenarios/world.h"
#include "topology/cluster.h"
#include "topology/folding.h"
#include "topology/layouts.h"

namespace tandem {

/// The axes of each kind of communicator of several ranks that crosses links.
std::vector<std::vector<MeshAxis>> ring_axes(const Scenario& scenario);

/// The axes along which ranks of one communicator have different places in trees over nodes.
std::vector<MeshAxis> tree_axes(const Scenario& scenario, const Mesh& mesh, const Cluster& cluster);

/// Those of the experts lie across the axes, those of key-value replicas are parts of one. By kind and rank: the next in its
/// ring.
std::vector<std::vector<std::uint32_t>> other_rings(const Scenario& scenario, const Mesh& mesh);

/// One communicator for each orbit of communicators that the step uses; the fold's input has it under the same number.
struct CommunicatorInstance {
  Slot slot = Slot::tp;
  std::uint32_t size = 0;
  std::uint32_t orbit = 1;             ///< how many it stands for
  std::vector<std::uint32_t> members;  ///< world ranks, ascending; {source, destination} for a pair
  Layout layout;
};

struct CommunicatorSurvey {
  std::vector<CommunicatorInstance> instances;
  std::vector<LinkId> links;  ///< the physical link of each of the fold's links
  FoldInput fold;             ///< ranks are the symmetry's orbits; the colours of ranks and links are left to the caller
};

CommunicatorSurvey survey_communicators(const Scenario& scenario, const Mesh& mesh, const Cluster& cluster,
                                        const Symmetry& symmetry, Detail detail);

}  // namespace tandem
