#include "scenarios/mesh/communicator_axes.h"

namespace tandem::scenarios {

std::vector<Axis> data_axes(const Scenario& scenario) {
  if (scenario.training.local_steps()) return {Axis::cp, Axis::ep};
  return {Axis::cp, Axis::ep, Axis::dp};
}

std::vector<Axis> norm_axes(const Scenario& scenario) {
  if (scenario.training.local_steps()) return {Axis::tp, Axis::cp, Axis::ep, Axis::pp};
  return {Axis::tp, Axis::cp, Axis::ep, Axis::dp, Axis::pp};
}

std::vector<Axis> stage_axes(const Scenario& scenario) {
  std::vector<Axis> axes = norm_axes(scenario);
  std::erase(axes, Axis::pp);
  return axes;
}

std::vector<Axis> amax_axes(const Scenario& scenario) {
  return scenario.training.tp_only_amax_red ? sequence_axes : stage_axes(scenario);
}

std::vector<std::uint32_t> kv_replicas(const Scenario& scenario, const Mesh& mesh, std::uint32_t rank) {
  const std::vector<std::uint32_t> all = mesh.members(rank, tp_axes);
  const std::int64_t replicas = scenario.kv_replicas();
  const std::int64_t first = mesh.coordinate(rank, Axis::tp) / replicas * replicas;
  return {all.begin() + first, all.begin() + first + replicas};
}

std::vector<std::uint32_t> expert_members(const Scenario& scenario, const Mesh& mesh, const ExpertMesh& experts,
                                          std::uint32_t rank, ExpertAxis axis) {
  std::vector<std::uint32_t> members = experts.members(rank, axis);
  if (axis != ExpertAxis::replica || !scenario.training.local_steps()) return members;
  const auto replica = [&](std::uint32_t r) { return mesh.coordinate(r, Axis::dp); };
  std::erase_if(members, [&](std::uint32_t member) { return replica(member) != replica(rank); });
  return members;
}

bool reduces_whole_gradients(const Scenario& scenario) {
  const TrainingSpec& training = scenario.training;
  return scenario.parallelism.zero == 0 || training.compressor.method == CompressionMethod::powersgd ||
         training.optimizer == OptimizerKind::adafactor;
}

GroupAlgorithms algorithms(const Scenario& scenario, Slot slot) {
  switch (slot) {
    case Slot::tp:
    case Slot::data_across:
    case Slot::replicas:
    case Slot::kv_replicas:
    case Slot::embedding:
    case Slot::mirror:
      return {.tree = true, .nvls = true};
    case Slot::data:
    case Slot::expert_data:
      return {.tree = reduces_whole_gradients(scenario), .nvls = reduces_whole_gradients(scenario)};
    default:
      return {};
  }
}

}  // namespace tandem::scenarios
