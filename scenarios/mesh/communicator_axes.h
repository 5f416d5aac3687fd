#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "scenarios/mesh/expert_mesh.h"
#include "scenarios/mesh/mesh.h"
#include "scenarios/mesh/world.h"
#include "topology/layouts.h"

namespace tandem::scenarios {

// Which ranks make up a communicator of each kind, and what NCCL can choose from there.

inline const std::vector<MeshAxis> tp_axes{MeshAxis::tp};
inline const std::vector<MeshAxis> context_axes{MeshAxis::cp};
inline const std::vector<MeshAxis> replica_axes{MeshAxis::dp};

/// Returns the axes along which gradients are reduced.
std::vector<MeshAxis> data_axes(const Scenario& scenario);

/// Returns the axes along which a norm is summed of which every rank holds a part.
std::vector<MeshAxis> norm_axes(const Scenario& scenario);

inline constexpr std::array<std::pair<Slot, ExpertMesh::Axis>, 3> expert_slots{{{Slot::expert, ExpertMesh::Axis::expert},
                                                                                {Slot::expert_tensor, ExpertMesh::Axis::tensor},
                                                                                {Slot::expert_data, ExpertMesh::Axis::replica}}};

/// Returns the ranks that hold the same key-value head as `rank`, ascending: a run of its tensor-parallel group.
std::vector<std::uint32_t> kv_replicas(const Scenario& scenario, const Mesh& mesh, std::uint32_t rank);

/// Returns the algorithms that NCCL can choose from. It has a choice where something is all-reduced. With ZeRO, gradients are
/// reduce-scattered and weights gathered.
GroupAlgorithms algorithms(const Scenario& scenario, Slot slot);

}  // namespace tandem::scenarios
