#include "scenarios/mesh/mesh.h"

#include <algorithm>

namespace tandem::scenarios {

Mesh::Mesh(const ParallelismSpec& parallelism) : order_(parallelism.order) {
  extents_[index_of(Axis::tp)] = parallelism.tp;
  extents_[index_of(Axis::cp)] = parallelism.cp;
  extents_[index_of(Axis::ep)] = parallelism.own_expert_axis ? parallelism.ep : 1;
  extents_[index_of(Axis::dp)] = parallelism.dp;
  extents_[index_of(Axis::pp)] = parallelism.pp;
  for (const Axis axis : order_) {
    strides_[index_of(axis)] = size_;
    size_ *= extents_[index_of(axis)];
  }
}

Coordinates Mesh::coordinates(std::uint32_t rank) const {
  Coordinates place;
  for (const Axis axis : mesh_axes) place[axis] = coordinate(rank, axis);
  return place;
}

void Mesh::advance(Coordinates& coordinates) const {
  for (const Axis axis : order_) {
    if (++coordinates[axis] < extent(axis)) return;
    coordinates[axis] = 0;
  }
}

std::uint32_t Mesh::rank(const Coordinates& coordinates) const {
  std::int64_t rank = 0;
  for (std::size_t a = 0; a < mesh_axis_count; ++a) rank += coordinates.at[a] * strides_[a];
  return static_cast<std::uint32_t>(rank);
}

std::vector<std::uint32_t> Mesh::members(std::uint32_t rank, const std::vector<Axis>& axes) const {
  Coordinates first = coordinates(rank);
  for (const Axis axis : axes) first[axis] = 0;
  std::vector<std::uint32_t> members{this->rank(first)};
  for (const Axis axis : order_) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) continue;
    const std::size_t inner = members.size();
    for (std::int64_t i = 1; i < extent(axis); ++i) {
      const auto shift = static_cast<std::uint32_t>(i * strides_[index_of(axis)]);
      for (std::size_t m = 0; m < inner; ++m) members.push_back(members[m] + shift);
    }
  }
  return members;
}

std::vector<Axis> exchanged(std::vector<Axis> order, Axis one, Axis other) {
  std::iter_swap(std::ranges::find(order, one), std::ranges::find(order, other));
  return order;
}

}  // namespace tandem::scenarios
