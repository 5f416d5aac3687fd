#include "studies/report/mesh_json.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/base/divide_up.h"
#include "scenarios/mesh/communicator_rows.h"
#include "scenarios/mesh/expert_mesh.h"
#include "scenarios/mesh/mesh.h"
#include "scenarios/mesh/rank_placement.h"

namespace tandem::studies {
namespace {

using Json = nlohmann::ordered_json;

struct LaidMesh {
  const ParallelismSpec& parallelism;
  Mesh mesh;
  ExpertMesh experts;
  RankPlaces places;

  explicit LaidMesh(const Scenario& scenario)
      : parallelism(scenario.parallelism), mesh(scenario.parallelism), experts(scenario.parallelism, mesh), places(scenario) {}

  /// Ranks that differ from rank 0 along the axis alone. Experts inside the dense mesh have no axis of it.
  std::vector<std::uint32_t> members(Axis axis) const {
    return axis == Axis::ep ? experts.members(0, ExpertAxis::expert) : mesh.members(0, {axis});
  }
};

Json axes_of(const Scenario& scenario, const LaidMesh& laid) {
  std::map<Axis, Reach> reaches = farthest_reaches(scenario);
  std::vector<Json> axes;
  for (const Axis axis : mesh_axes) {
    const std::vector<std::uint32_t> members = laid.members(axis);
    if (members.size() < 2) continue;
    std::set<std::int64_t> nodes;
    for (const std::uint32_t rank : members) nodes.insert(laid.places.node(rank));
    axes.push_back({{"axis", name_of(axis)},
                    {"size", members.size()},
                    {"stride", members[1] - members[0]},
                    {"nodes", nodes.size()},
                    {"reach", name_of(reaches[axis])}});
  }
  std::ranges::stable_sort(axes, {}, [](const Json& axis) { return axis["stride"].get<std::int64_t>(); });
  return axes;
}

Json coordinates_of(const LaidMesh& laid, std::uint32_t rank) {
  Json coordinates = Json::object();
  const Coordinates at = laid.mesh.coordinates(rank);
  for (const Axis axis : mesh_axes) coordinates[std::string(name_of(axis))] = at[axis];
  coordinates[std::string(name_of(Axis::ep))] = laid.experts.place(rank).ep;
  return coordinates;
}

}  // namespace

Json mesh_json(const Scenario& scenario) {
  constexpr std::int64_t most_drawn = 64;
  const LaidMesh laid(scenario);
  const std::int64_t ranks = laid.mesh.size(), per_node = scenario.cluster.gpus_per_node;
  std::vector<std::int64_t> rank_of_gpu(static_cast<std::size_t>(std::min(most_drawn, scenario.cluster.gpus)), -1);
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const std::uint32_t gpu = laid.places.gpu(static_cast<std::uint32_t>(rank));
    if (gpu < rank_of_gpu.size()) rank_of_gpu[gpu] = rank;
  }
  Json drawn = Json::array();
  for (const std::int64_t rank : rank_of_gpu)
    drawn.push_back(rank < 0 ? Json::object() : coordinates_of(laid, static_cast<std::uint32_t>(rank)));
  return {{"gpus", ranks},
          {"gpus_per_node", per_node},
          {"nodes", divide_up(ranks, per_node)},
          {"axes", axes_of(scenario, laid)},
          {"gpus_drawn", drawn}};
}

}  // namespace tandem::studies
