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

inline const std::vector<Axis> tp_axes{Axis::tp};
inline const std::vector<Axis> context_axes{Axis::cp};
inline const std::vector<Axis> sequence_axes{Axis::tp, Axis::cp};
inline const std::vector<Axis> replica_axes{Axis::dp};

/// Along which gradients are reduced.
std::vector<Axis> data_axes(const Scenario& scenario);

/// Along which a norm is summed of which every rank holds a part.
std::vector<Axis> norm_axes(const Scenario& scenario);

/// Along which lie the ranks of a stage that work on one model.
std::vector<Axis> stage_axes(const Scenario& scenario);

/// Along which the maxima of delayed scaling are reduced.
std::vector<Axis> amax_axes(const Scenario& scenario);

inline constexpr std::array<std::pair<Slot, ExpertAxis>, 3> expert_slots{
    {{Slot::expert, ExpertAxis::expert}, {Slot::expert_tensor, ExpertAxis::tensor}, {Slot::expert_data, ExpertAxis::replica}}};

/// Returns the ranks that hold the same key-value head as `rank`, ascending: a run of its tensor-parallel group.
std::vector<std::uint32_t> kv_replicas(const Scenario& scenario, const Mesh& mesh, std::uint32_t rank);

/// Returns the ranks that differ from `rank` along an axis of the experts alone and share communicators with it, ascending.
std::vector<std::uint32_t> expert_members(const Scenario& scenario, const Mesh& mesh, const ExpertMesh& experts,
                                          std::uint32_t rank, ExpertAxis axis);

/// Whether data-parallel ranks all-reduce gradients, or the factors of them or of their squares.
bool reduces_whole_gradients(const Scenario& scenario);

/// Returns the algorithms that NCCL can choose from. It has a choice where something is all-reduced. With ZeRO, gradients are
/// reduce-scattered and weights gathered.
GroupAlgorithms algorithms(const Scenario& scenario, Slot slot);

}  // namespace tandem::scenarios
