#include "scenarios/mesh/expert_mesh.h"

#include "scenarios/mesh/rank_placement.h"

namespace tandem::scenarios {

ExpertMesh::ExpertMesh(const ParallelismSpec& p, const Mesh& mesh)
    : mesh_(mesh), etp_(p.etp), ep_(p.ep), replicas_(p.tp * p.cp * p.dp / p.expert_shards()), own_axis_(p.own_expert_axis) {
  for (const Axis axis : p.order) {
    if (axis != Axis::pp && axis != Axis::ep) axes_.push_back(axis);
  }
  offsets_ = mesh.members(0, axes_);
}

std::int64_t ExpertMesh::number(const Coordinates& place) const {
  std::int64_t number = 0, stride = 1;
  for (const Axis axis : axes_) {
    number += place[axis] * stride;
    stride *= mesh_.extent(axis);
  }
  return number;
}

ExpertPlace ExpertMesh::place(std::uint32_t rank) const {
  const Coordinates place = mesh_.coordinates(rank);
  const std::int64_t n = number(place);
  const auto etp = static_cast<std::int32_t>(n % etp_);
  if (own_axis_) return {etp, place[Axis::ep], static_cast<std::int32_t>(n / etp_)};
  return {etp, static_cast<std::int32_t>(n / etp_ % ep_), static_cast<std::int32_t>(n / (etp_ * ep_))};
}

std::vector<std::uint32_t> ExpertMesh::members(std::uint32_t rank, ExpertAxis axis) const {
  if (axis == ExpertAxis::expert && own_axis_) return mesh_.members(rank, {Axis::ep});
  const std::int64_t stride = axis == ExpertAxis::tensor ? 1 : axis == ExpertAxis::expert || own_axis_ ? etp_ : etp_ * ep_;
  const std::int64_t count = axis == ExpertAxis::tensor ? etp_ : axis == ExpertAxis::expert ? ep_ : replicas_;
  const std::int64_t mine = number(mesh_.coordinates(rank));
  const std::int64_t first = mine - mine / stride % count * stride;
  const std::uint32_t of_number_0 = rank - offsets_[static_cast<std::size_t>(mine)];
  std::vector<std::uint32_t> members;
  members.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    members.push_back(of_number_0 + offsets_[static_cast<std::size_t>(first + i * stride)]);
  return members;
}

std::int64_t expert_nodes(const Scenario& scenario) {
  const ParallelismSpec& p = scenario.parallelism;
  if (p.ep == 1) return p.reference_expert_nodes;
  const Mesh mesh(p);
  const RankPlaces places(scenario);
  std::int64_t nodes = 0, last = -1;
  for (const std::uint32_t rank : ExpertMesh(p, mesh).members(0, ExpertAxis::expert)) {
    const std::int64_t node = places.node(rank);
    if (node != last) ++nodes;
    last = node;
  }
  return nodes;
}

bool nodes_hold_equal_runs(const Scenario& scenario) {
  const ParallelismSpec& p = scenario.parallelism;
  const std::int64_t nodes = expert_nodes(scenario);
  if (p.ep == 1) return true;
  if (p.ep % nodes != 0) return false;
  const std::size_t run = static_cast<std::size_t>(p.ep / nodes);
  const Mesh mesh(p);
  const ExpertMesh experts(p, mesh);
  const RankPlaces places(scenario);
  for (std::uint32_t rank = 0; rank < mesh.size(); ++rank) {
    if (experts.place(rank).ep > 0) continue;
    const std::vector<std::uint32_t> group = experts.members(rank, ExpertAxis::expert);
    for (std::size_t i = 1; i < group.size(); ++i) {
      const bool same_node = places.node(group[i]) == places.node(group[i - 1]);
      if (same_node != (i % run != 0)) return false;
    }
  }
  return true;
}

}  // namespace tandem::scenarios
