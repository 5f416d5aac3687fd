#include "scenarios/mesh/shared_devices.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "runtime/base/parallel.h"

namespace tandem::scenarios {

bool takes_parts_to_parts(const std::vector<std::uint32_t>& image, const std::vector<std::uint32_t>& part) {
  for (std::uint32_t rank = 0; rank < image.size(); ++rank) {
    const std::uint32_t from = part[rank], to = part[image[rank]];
    if (from == no_device ? to != no_device : to == no_device || to != part[image[from]]) return false;
  }
  return true;
}

SharedDevices::SharedDevices(const Cluster& cluster, std::uint32_t ranks) {
  const auto per_node = static_cast<std::uint32_t>(cluster.spec().gpus_per_node);
  for (ByRank& of_level : devices_) of_level.resize(ranks);
  ByRank node(ranks), place(ranks), lowest(cluster.device_count(), no_device);
  constexpr std::uint32_t at_once = 8192;  // ranks
  in_parallel((ranks + at_once - 1) / at_once, [&](std::size_t part) {
    const std::uint32_t first = static_cast<std::uint32_t>(part) * at_once, end = std::min(ranks, first + at_once);
    for (std::uint32_t rank = first; rank < end; ++rank) {
      const Attachment attachment = cluster.attachment(rank);
      node[rank] = attachment.node * per_node;
      place[rank] = rank - node[rank];
      for (std::size_t level = 0; level < levels; ++level) devices_[level][rank] = attachment.devices[level];
    }
  });
  add_part(std::move(node));
  add_part(std::move(place));
  for (std::size_t level = 1; level < levels; ++level) {  // the GPU is nobody else's
    ByRank part;
    part.reserve(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const std::uint32_t device = devices_[level][rank];
      if (device != no_device && lowest[device] == no_device) lowest[device] = rank;
      part.push_back(device == no_device ? no_device : lowest[device]);
    }
    add_part(std::move(part));
  }
}

/// Nothing is told by parts of one rank each, nor by one part of all.
void SharedDevices::add_part(ByRank part) {
  bool each_its_own = true, one = true;
  for (std::uint32_t rank = 0; rank < part.size(); ++rank) {
    each_its_own = each_its_own && part[rank] == rank;
    one = one && part[rank] == part.front();
  }
  if (!each_its_own && !one) parts_.push_back(std::move(part));
}

bool SharedDevices::go_to_shared(const ByRank& image) const {
  std::atomic<bool> all = true;
  in_parallel(parts_.size(), [&](std::size_t part) {
    if (all && !takes_parts_to_parts(image, parts_[part])) all = false;
  });
  return all;
}

}  // namespace tandem::scenarios
