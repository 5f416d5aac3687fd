#include "scenarios/mesh/symmetry.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "scenarios/mesh/shared_devices.h"

namespace tandem::scenarios {
namespace {

using ByRank = std::vector<std::uint32_t>;

/// Writes by rank where the cyclic shift by `places` along `axis` takes it. Memory is used again from shift to shift.
void shift(const Mesh& mesh, Axis axis, std::int64_t places, ByRank& image) {
  const auto stride = static_cast<std::uint32_t>(mesh.stride(axis)), extent = static_cast<std::uint32_t>(mesh.extent(axis));
  image.clear();
  for (std::uint32_t first = 0; first < mesh.size(); first += stride * extent) {
    for (std::uint32_t at = 0; at < extent; ++at) {
      const std::uint32_t to = first + (at + static_cast<std::uint32_t>(places)) % extent * stride;
      for (std::uint32_t inner = 0; inner < stride; ++inner) image.push_back(to + inner);
    }
  }
}

bool keeps(const ByRank& image, const ByRank& label) {
  for (std::uint32_t rank = 0; rank < image.size(); ++rank)
    if (label[rank] != label[image[rank]]) return false;
  return true;
}

bool takes_rings_to_rings(const ByRank& image, const Rings& rings, const SharedDevices& shared) {
  if (!takes_parts_to_parts(image, rings.group())) return false;
  bool step_by_step = true;
  for (std::uint32_t rank = 0; rank < image.size() && step_by_step; ++rank)
    step_by_step = rings.next()[image[rank]] == image[rings.next()[rank]];
  return step_by_step || (rings.treats_members_alike() && keeps(image, rings.group()) && keeps(image, shared.leaf()));
}

bool moves_whole_runs(const Mesh& mesh, Axis axis, std::int64_t places, const std::vector<Symmetry::Runs>& runs) {
  return std::ranges::all_of(runs, [&](const Symmetry::Runs& of_axis) {
    return of_axis.axis != axis || of_axis.length >= mesh.extent(axis) || places % of_axis.length == 0;
  });
}

std::uint32_t find(std::vector<std::uint32_t>& parent, std::uint32_t x) {
  while (parent[x] != x) x = parent[x] = parent[parent[x]];
  return x;
}

}  // namespace

Symmetry::Symmetry(const Mesh& mesh, const Cluster& cluster) : device_orbit_(cluster.device_count()) {
  std::iota(device_orbit_.begin(), device_orbit_.end(), 0U);
  count_device_orbits();
  std::vector<std::int64_t> periods;
  for (const Axis axis : mesh_axes) periods.push_back(mesh.extent(axis));
  count_orbits(mesh, periods);
}

Symmetry::Symmetry(const Mesh& mesh, const Cluster& cluster, const std::vector<std::uint32_t>& colours,
                   const Communicators& communicators)
    : device_orbit_(cluster.device_count()) {
  std::iota(device_orbit_.begin(), device_orbit_.end(), 0U);
  const SharedDevices shared(cluster, static_cast<std::uint32_t>(colours.size()));
  ByRank image;
  image.reserve(colours.size());
  const auto is_symmetry = [&] {
    return keeps(image, colours) && shared.go_to_shared(image) &&
           std::ranges::all_of(communicators.rings,
                               [&](const Rings& rings) { return takes_rings_to_rings(image, rings, shared); });
  };
  std::vector<std::int64_t> periods;
  for (const Axis axis : mesh_axes) {
    periods.push_back(mesh.extent(axis));
    if (axis == Axis::pp || std::ranges::count(communicators.trees, axis) > 0) continue;
    for (std::int64_t places = 1; places < mesh.extent(axis); ++places) {
      if (mesh.extent(axis) % places != 0 || !moves_whole_runs(mesh, axis, places, communicators.runs)) continue;
      shift(mesh, axis, places, image);
      if (!is_symmetry()) continue;
      periods.back() = places;
      break;
    }
  }
  count_orbits(mesh, periods);
  for (const ByRank& device_of : shared.by_level()) unite_devices(device_of);
  count_device_orbits();
}

/// Devices that ranks of one orbit hang on, at the same level, are one orbit.
void Symmetry::unite_devices(const std::vector<std::uint32_t>& device_of) {
  std::vector<std::uint32_t> of_orbit(representatives_.size(), no_device);
  for (std::uint32_t rank = 0; rank < device_of.size(); ++rank) {
    const std::uint32_t device = device_of[rank];
    std::uint32_t& known = of_orbit[orbit_of_[rank]];
    if (device == no_device) continue;
    if (known == no_device) known = device;
    if (device_orbit_[device] == known) continue;
    const std::uint32_t one = find(device_orbit_, device), other = find(device_orbit_, known);
    device_orbit_[std::max(one, other)] = std::min(one, other);
  }
}

void Symmetry::count_device_orbits() {
  device_orbit_size_.assign(device_orbit_.size(), 0);
  for (std::uint32_t device = 0; device < device_orbit_.size(); ++device) {
    device_orbit_[device] = find(device_orbit_, device);
    ++device_orbit_size_[device_orbit_[device]];
  }
}

void Symmetry::count_orbits(const Mesh& mesh, const std::vector<std::int64_t>& periods) {
  std::array<Axis, mesh_axis_count> inner_first = mesh_axes;
  std::ranges::stable_sort(inner_first, {}, [&](Axis axis) { return mesh.stride(axis); });
  std::vector<std::uint32_t> lowest{0};
  lowest.reserve(static_cast<std::size_t>(mesh.size()));
  for (const Axis axis : inner_first) {
    const std::size_t inner = lowest.size();
    for (std::int64_t at = 1; at < mesh.extent(axis); ++at) {
      const auto shift = static_cast<std::uint32_t>(at % periods[index_of(axis)] * mesh.stride(axis));
      for (std::size_t rank = 0; rank < inner; ++rank) lowest.push_back(lowest[rank] + shift);
    }
  }
  orbit_of_.resize(lowest.size());
  for (std::uint32_t rank = 0; rank < lowest.size(); ++rank) {
    if (lowest[rank] == rank) {
      orbit_of_[rank] = static_cast<std::uint32_t>(representatives_.size());
      representatives_.push_back(rank);
    } else {
      orbit_of_[rank] = orbit_of_[lowest[rank]];
    }
  }
  orbit_size_ = static_cast<std::uint32_t>(lowest.size() / representatives_.size());
}

LinkId Symmetry::representative_link(LinkId link) const { return 2 * device_orbit_[link / 2] + link % 2; }

std::uint32_t Symmetry::link_orbit_size(LinkId representative) const { return device_orbit_size_[representative / 2]; }

}  // namespace tandem::scenarios
