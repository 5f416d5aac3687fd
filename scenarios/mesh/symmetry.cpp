#include "scenarios/mesh/symmetry.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

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

/// The device that each one is mapped to by a shift under which GPUs share what their images share: then it is a map of nodes,
/// NICs, leaves and pods as well. Nothing under another.
std::optional<std::vector<std::uint32_t>> map_of_devices(const Shift& shift, const Cluster& cluster,
                                                         const std::vector<Attachment>& attachments,
                                                         const std::vector<std::uint32_t>& colours) {
  std::vector<std::uint32_t> image(cluster.device_count(), unset);
  std::vector<std::uint32_t> node_image(static_cast<std::size_t>(cluster.nodes()), unset);
  const auto consistent = [](std::uint32_t& known, std::uint32_t found) {
    if (known == unset) known = found;
    return known == found;
  };
  for (std::uint32_t rank = 0; rank < colours.size(); ++rank) {
    const std::uint32_t to = shift(rank);
    if (colours[rank] != colours[to]) return {};
    const Attachment& a = attachments[rank];
    const Attachment& b = attachments[to];
    if (!consistent(node_image[a.node], b.node)) return {};
    for (std::size_t level = 0; level < a.devices.size(); ++level) {
      if ((a.devices[level] == no_device) != (b.devices[level] == no_device)) return {};
      if (a.devices[level] != no_device && !consistent(image[a.devices[level]], b.devices[level])) return {};
    }
  }
  return image;
}

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
  std::vector<std::int64_t> periods;
  for (const Axis axis : mesh_axes) {
    periods.push_back(mesh.extent(axis));
    if (axis == Axis::pp || std::ranges::count(communicators.trees, axis) > 0) continue;
    if (!takes_rings_to_rings(axis, mesh, communicators.rings)) continue;
    for (std::int64_t places = 1; places < mesh.extent(axis); ++places) {
      if (mesh.extent(axis) % places != 0 || !moves_whole_blocks(axis, places, mesh, communicators.data_block)) continue;
      const Shift shift(mesh, axis, places);
      if (!takes_successors_to_successors(shift, communicators.successors)) continue;
      const auto image = map_of_devices(shift, cluster, attachments, colours);
      if (!image) continue;
      periods.back() = places;
      for (std::uint32_t device = 0; device < image->size(); ++device) {
        if ((*image)[device] == unset) continue;
        const std::uint32_t one = find(device_orbit_, device), other = find(device_orbit_, (*image)[device]);
        device_orbit_[std::max(one, other)] = std::min(one, other);
      }
      break;
    }
  }
  count_device_orbits();
  count_orbits(mesh, periods);
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
