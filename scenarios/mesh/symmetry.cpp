#include "scenarios/mesh/symmetry.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace tandem::scenarios {
namespace {

constexpr std::uint32_t unset = 0xFFFFFFFF;

/// The cyclic shift by `places` along `axis`.
class Shift {
 public:
  Shift(const Mesh& mesh, Axis axis, std::int64_t places)
      : stride_(static_cast<std::uint32_t>(mesh.stride(axis))),
        extent_(static_cast<std::uint32_t>(mesh.extent(axis))),
        places_(static_cast<std::uint32_t>(places)) {}

  std::uint32_t operator()(std::uint32_t rank) const {
    const std::uint32_t at = rank / stride_ % extent_;
    return at + places_ < extent_ ? rank + places_ * stride_ : rank - (extent_ - places_) * stride_;
  }

 private:
  std::uint32_t stride_, extent_, places_;
};

/// Where a shift of the ranks takes the cluster's nodes and devices.
class Images {
 public:
  Images(const Cluster& cluster, const std::vector<Attachment>& attachments, const std::vector<std::uint32_t>& colours)
      : attachments_(attachments),
        colours_(colours),
        of_node_(static_cast<std::size_t>(cluster.nodes())),
        of_device_(cluster.device_count()) {}

  /// Whether GPUs share what their images share: then the shift is a map of nodes, NICs, leaves and pods as well.
  bool are_those_of_a_map(const Shift& shift) {
    std::ranges::fill(of_node_, unset);
    std::ranges::fill(of_device_, unset);
    for (std::uint32_t rank = 0; rank < colours_.size(); ++rank)
      if (!agrees(rank, shift(rank))) return false;
    return true;
  }

 private:
  const std::vector<Attachment>& attachments_;
  const std::vector<std::uint32_t>& colours_;
  std::vector<std::uint32_t> of_node_, of_device_;

  bool agrees(std::uint32_t rank, std::uint32_t to) {
    const auto is_image = [](std::uint32_t& known, std::uint32_t found) {
      if (known == unset) known = found;
      return known == found;
    };
    if (colours_[rank] != colours_[to]) return false;
    const Attachment &a = attachments_[rank], &b = attachments_[to];
    if (!is_image(of_node_[a.node], b.node)) return false;
    for (std::size_t level = 1; level < a.devices.size(); ++level) {  // the GPU is nobody else's
      const std::uint32_t from = a.devices[level];
      if (from == no_device ? b.devices[level] != no_device : !is_image(of_device_[from], b.devices[level])) return false;
    }
    return true;
  }
};

bool takes_rings_to_rings(Axis axis, const Mesh& mesh, const std::vector<std::vector<Axis>>& rings) {
  return std::ranges::all_of(rings, [&](const std::vector<Axis>& axes) {
    if (std::ranges::find(axes, axis) == axes.end()) return true;
    return std::ranges::all_of(axes,
                               [&](Axis other) { return mesh.extent(other) == 1 || mesh.stride(other) <= mesh.stride(axis); });
  });
}

/// Ranks along cp, ep and dp, ascending, are cut into blocks: does the shift take each block to another or itself?
bool moves_whole_blocks(Axis axis, std::int64_t places, const Mesh& mesh, std::int64_t block) {
  constexpr std::array blocked{Axis::cp, Axis::ep, Axis::dp};
  if (block == 0 || std::ranges::find(blocked, axis) == blocked.end()) return true;
  std::int64_t neighbours = 1;
  for (const Axis other : blocked)
    if (mesh.stride(other) < mesh.stride(axis)) neighbours *= mesh.extent(other);
  return neighbours * places % block == 0;
}

bool takes_successors_to_successors(const Shift& shift, const std::vector<std::vector<std::uint32_t>>& successors) {
  return std::ranges::all_of(successors, [&](const std::vector<std::uint32_t>& next) {
    for (std::uint32_t rank = 0; rank < next.size(); ++rank) {
      if (next[shift(rank)] != shift(next[rank])) return false;
    }
    return true;
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
  std::vector<Attachment> attachments;
  attachments.reserve(colours.size());
  for (std::uint32_t rank = 0; rank < colours.size(); ++rank) attachments.push_back(cluster.attachment(rank));
  Images images(cluster, attachments, colours);
  std::vector<std::int64_t> periods;
  for (const Axis axis : mesh_axes) {
    periods.push_back(mesh.extent(axis));
    if (axis == Axis::pp || std::ranges::count(communicators.trees, axis) > 0) continue;
    if (!takes_rings_to_rings(axis, mesh, communicators.rings)) continue;
    for (std::int64_t places = 1; places < mesh.extent(axis); ++places) {
      if (mesh.extent(axis) % places != 0 || !moves_whole_blocks(axis, places, mesh, communicators.data_block)) continue;
      const Shift shift(mesh, axis, places);
      if (!takes_successors_to_successors(shift, communicators.successors)) continue;
      if (!images.are_those_of_a_map(shift)) continue;
      periods.back() = places;
      break;
    }
  }
  count_orbits(mesh, periods);
  unite_devices(attachments);
  count_device_orbits();
}

/// Devices that ranks of one orbit hang on, at the same level, are one orbit.
void Symmetry::unite_devices(const std::vector<Attachment>& attachments) {
  std::vector<Attachment> of_orbit(representatives_.size());
  for (std::uint32_t rank = 0; rank < attachments.size(); ++rank) {
    auto& known = of_orbit[orbit_of_[rank]].devices;
    for (std::size_t level = 0; level < known.size(); ++level) {
      const std::uint32_t device = attachments[rank].devices[level];
      if (device == no_device) continue;
      if (known[level] == no_device) known[level] = device;
      if (device_orbit_[device] == known[level]) continue;
      const std::uint32_t one = find(device_orbit_, device), other = find(device_orbit_, known[level]);
      device_orbit_[std::max(one, other)] = std::min(one, other);
    }
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
  std::vector<std::uint32_t> lowest(static_cast<std::size_t>(mesh.size()));
  for (std::uint32_t rank = 0; rank < lowest.size(); ++rank) lowest[rank] = rank;
  for (const Axis axis : mesh_axes) {
    const auto period = static_cast<std::uint32_t>(periods[index_of(axis)]);
    const auto extent = static_cast<std::uint32_t>(mesh.extent(axis)), stride = static_cast<std::uint32_t>(mesh.stride(axis));
    if (period == extent) continue;
    for (std::uint32_t rank = 0; rank < lowest.size(); ++rank) {
      const std::uint32_t at = rank / stride % extent;
      lowest[rank] -= (at - at % period) * stride;
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
